<?php
// Closes connections after a number of operations and opens them again. Without the option, a lane
// prepares its calls before the window.

declare(strict_types=1);

/** A lane that renews connections. */
trait RenewedLane
{
    /** A new session replaces the old one after this number of calls; 0: never. */
    private readonly int $reconnectAfter;
    private int $callsOfSession = 0;
    /** The number of renewed connections. */
    private int $renewed = 0;

    /** The lane's operations as they are played, from the first one on. @return iterable<Operation> */
    private function played(): iterable
    {
        return $this->reconnectAfter ? $this->renewing() : $this->script();
    }

    /** Each operation with its call of the session that is open then. @return Generator<Operation> */
    private function renewing(): Generator
    {
        foreach ($this->tape->lane($this->place, $this->lanes, false) as $op) {
            if ($this->callsOfSession++ === $this->reconnectAfter) {
                $this->renew();
            }
            $op->base = $this->kinds[$op->kind] * Histogram::PLACES;
            $this->session->{$op->kind}($op);
            yield $op;
        }
    }

    /** Close the connections, and open others: between two calls, not timed. */
    private function renew(): void
    {
        if ($this->quiet) { // operations without a reply must arrive first
            $this->record->barriers += $this->session->barrier();
        }
        $this->session = new Client($this->setup, $this->tape);
        $this->session->begin($this->quiet);
        $this->callsOfSession = 1;
        $this->renewed += count($this->setup->servers);
    }
}
