package cachemark.worker;

/** The counted part of a lane's slice. A run counts from its start. */
final class SliceCount {
    /** The client has no server: its calls wait for a CPU only. */
    private final boolean inProcess;

    final Groups groups;
    /**
     * The end of the lead-in, then of the first half of the counted part; MAX_VALUE: no part
     * follows.
     */
    long nextPartNs = Long.MAX_VALUE;

    private long middleNs = Long.MAX_VALUE;
    /** The lead-in is over. */
    boolean counting = true;
    /** The begin of the counted part, and the operations that had succeeded and failed by then. */
    private long sinceNs;

    private long leadInOk;
    private long leadInFailed;
    /** The end of the first half, 0 before it, and the slice's operations by then. */
    private long halfEndedNs;

    private long halfPlayed;

    SliceCount(boolean inProcess, Groups groups) {
        this.inProcess = inProcess;
        this.groups = groups;
    }

    void beginLeadIn(long untilNs, long middleNs) {
        nextPartNs = untilNs;
        this.middleNs = middleNs;
        halfEndedNs = 0;
        counting = false;
        groups.cut();
    }

    /** End the lead-in, or the first half of the counted part. */
    void endPart(long nowNs, long ok, long failed) {
        if (counting) {
            halfEndedNs = nowNs;
            halfPlayed = ok + failed;
            nextPartNs = Long.MAX_VALUE;
            return;
        }
        // A caller that has played nothing by then had no CPU.
        boolean noCpu = ok + failed == 0 || inProcess;
        sinceNs = noCpu ? nextPartNs : nowNs;
        nextPartNs = middleNs;
        counting = true;
        leadInOk = ok;
        leadInFailed = failed;
    }

    /** Add the slice, in which `ok` operations succeeded and `failed` failed. */
    void addTo(Slices.Sums sums, long ok, long failed) {
        long okBefore = counting ? leadInOk : ok;
        long failedBefore = counting ? leadInFailed : failed;
        sums.leadInOps += okBefore + failedBefore;
        sums.ops += ok - okBefore;
        sums.errors += failed - failedBefore;
        sums.halfOps += (halfEndedNs > 0 ? halfPlayed : ok + failed) - okBefore - failedBefore;
    }

    /**
     * Add the length of the counted part, whose last operation ended then, and of its first half. The
     * part ends with the slice at the earliest, to include time without a CPU; the half ends with its
     * last completion, or without one in the middle.
     */
    void addTimes(Slices.Sums sums, long endedNs, long endNs) {
        long beganNs = counting ? sinceNs : nextPartNs;
        long halfEndNs = halfEndedNs > 0 ? halfEndedNs : Math.min(middleNs, endNs);
        sums.elapsedNs += Math.max(0, Math.max(endedNs, endNs) - beganNs);
        sums.halfNs += Math.max(0, halfEndNs - beganNs);
    }
}
