package cachemark.worker;

/** Where the counted part of a lane's slice begins. A run is counted from its start. */
final class SliceCount {
    /** The client has no server: its calls wait for nothing but a CPU. */
    private final boolean inProcess;

    final Groups groups;
    /** When the lead-in ends; MAX_VALUE after it, and if all of the slice is lead-in. */
    long countFromNs = Long.MAX_VALUE;
    /** The lead-in is over. */
    boolean counting = true;
    /** The begin of the counted part, and how many operations had succeeded and failed by then. */
    private long sinceNs;

    private long leadInOk;
    private long leadInFailed;

    SliceCount(boolean inProcess, Groups groups) {
        this.inProcess = inProcess;
        this.groups = groups;
    }

    void beginLeadIn(long untilNs) {
        countFromNs = untilNs;
        counting = false;
        groups.cut();
    }

    void beginCounting(long nowNs, long ok, long failed) {
        // A caller that has played nothing by then had no CPU.
        boolean noCpu = ok + failed == 0 || inProcess;
        sinceNs = noCpu ? countFromNs : nowNs;
        countFromNs = Long.MAX_VALUE;
        counting = true;
        leadInOk = ok;
        leadInFailed = failed;
    }

    /** Add what the slice came to, in which so many operations succeeded and failed. */
    void addTo(Slices.Sums sums, long ok, long failed) {
        long okBefore = counting ? leadInOk : ok;
        long failedBefore = counting ? leadInFailed : failed;
        sums.leadInOps += okBefore + failedBefore;
        sums.ops += ok - okBefore;
        sums.errors += failed - failedBefore;
    }

    /**
     * How long the counted part is, if the last operation ended then. It is not over before the
     * slice is, so that the time without a CPU belongs to it.
     */
    long countedNs(long endedNs, long endNs) {
        return Math.max(0, Math.max(endedNs, endNs) - (counting ? sinceNs : countFromNs));
    }
}
