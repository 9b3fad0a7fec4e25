<?php
// A lane's signs of life to its parent, in a window and while it sums up.

declare(strict_types=1);

trait Telling
{
    /**
     * The same operations. The sums of a million take seconds on a busy machine, so this sends signs of life.
     *
     * @param iterable<Operation> $operations
     * @return Generator<Operation>
     */
    private function whileTelling(iterable $operations): Generator
    {
        $left = 0;
        foreach ($operations as $op) {
            if ($left-- === 0) {
                $left = self::SUMMED_AT_ONCE;
                $this->tellProgress(hrtime(true), $this->record->played);
            }
            yield $op;
        }
    }

    private function tellProgress(int $now, int $played): void
    {
        if ($now - $this->reportedNs >= self::PROGRESS_NS) {
            $this->reportedNs = $now;
            $failed = $this->record->failed;
            $this->parent->send(['type' => 'progress', 'ops' => $played - $failed, 'errors' => $failed]);
        }
    }
}
