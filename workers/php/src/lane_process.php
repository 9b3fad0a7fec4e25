<?php
// The process of a lane: it gets requests from its parent, and answers with their results.

declare(strict_types=1);

final class LaneProcess
{
    public function __construct(private readonly Messages $parent)
    {
    }

    /** The life of a lane: open the client, then play its parent's requests, until the parent is gone. */
    public function live(Tape $tape, Prepare $setup, int $number): void
    {
        // The collector of cycles would walk all prepared operations in the window, since they look like
        // garbage to it. A web request ends before the collector runs.
        gc_disable();
        $this->guarded(function () use ($tape, $setup, $number): void {
            $lane = new Lane($this->parent, $tape, $setup, $number);
            $this->parent->send(['type' => 'ready']);
            $this->serve($lane);
        });
    }

    /** Send a lane's exceptions to the parent. */
    private function guarded(Closure $live): void
    {
        try {
            $live();
        } catch (Unreachable $error) {
            $this->parent->send(['type' => 'error', 'kind' => 'connect', 'text' => $error->getMessage()]);
        } catch (Throwable $error) {
            fwrite(STDERR, "$error\n");
            $this->parent->send(['type' => 'error', 'kind' => 'internal', 'text' => describe($error)]);
        }
    }

    private function serve(Lane $lane): void
    {
        while ($requests = $this->parent->wait()) {
            foreach ($requests as $request) {
                if (($request['gives_up']['way'] ?? '') === 'exhaust' && !MemoryLimit::isReached()) {
                    $live = function () use ($lane, $request): void {
                        $this->answer($lane, $request);
                        $this->serve($lane);
                    };
                    MemoryLimit::survive(fn () => $this->guarded($live));
                    return;
                }
                $this->answer($lane, $request);
            }
        }
    }

    /** @param array<string, mixed> $request */
    private function answer(Lane $lane, array $request): void
    {
        if ($request['type'] === 'begin_slices') {
            $this->parent->send(['type' => 'done', ...$lane->playSlices()]);
        }
        if ($request['type'] === 'run') {
            $start = function (): int {
                $this->parent->send(['type' => 'armed']);
                $heard = $this->parent->wait();
                return $heard[0]['start_ns'] ?? exit(0);
            };
            $this->parent->send(['type' => 'done', ...$lane->run($request, $start)]);
        }
    }
}
