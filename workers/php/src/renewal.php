<?php
// Connections that are closed after a number of operations, and opened again. A lane that is not asked
// for it has its calls ready before the window.

declare(strict_types=1);

/** A lane that renews connections. */
trait RenewedLane
{
    /** A session makes way for a new one after this number of calls; 0: it never does. */
    private readonly int $reconnectAfter;
    private int $callsOfSession = 0;
    /** Connections that were opened again as asked. */
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

    /** Close the connections, and open others: between two calls, where no time is taken. */
    private function renew(): void
    {
        if ($this->quiet) { // what had no reply must arrive before
            $this->record->barriers += $this->session->barrier();
        }
        $this->session = new Client($this->setup, $this->tape);
        $this->session->begin($this->quiet);
        $this->callsOfSession = 1;
        $this->renewed += count($this->setup->servers);
    }
}
