package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Arrays;
import org.HdrHistogram.Histogram;

/** The message `done`: the end of a run, or of slices. */
final class Done {
    private Done() {}

    /** Times of a run, or of all slices together; the CPU time in user code and in the kernel. */
    record Totals(long elapsedNs, long sendElapsedNs, long[] cpuNs) {
        static Totals of(Window window, Lane[] own, long[] cpuNs) {
            long sentNs = window.startNs;
            long endedNs = window.startNs;
            for (Lane lane : own) {
                sentNs = Math.max(sentNs, lane.sentNs);
                endedNs = Math.max(endedNs, lane.endedNs);
            }
            return new Totals(endedNs - window.startNs, sentNs - window.startNs, cpuNs);
        }
    }

    /** The sum of the lanes, whose recorders and timelines are added to the first lane's. */
    static JsonObject of(String phase, Lane[] own, boolean openLoop, Totals totals) {
        long inFlight = 0;
        long queued = 0;
        long unsent = 0;
        long barriers = 0;
        JsonObject sections = sections(own);
        Recorder sum = own[0].recorders[0];
        for (Lane lane : own) {
            // In an open loop each lane has seen the count of all.
            inFlight = openLoop ? Math.max(inFlight, lane.peak) : inFlight + lane.peak;
            queued += lane.queued;
            unsent += lane.unsent;
            barriers += lane.barriers;
            for (Recorder recorder : lane.recorders) {
                if (recorder != sum) {
                    sum.add(recorder);
                }
            }
        }
        JsonObject done = new JsonObject();
        done.addProperty("type", "done");
        done.addProperty("phase", phase);
        done.addProperty("elapsed_ns", totals.elapsedNs);
        done.addProperty("send_elapsed_ns", totals.sendElapsedNs);
        done.add("operations", sum.operations());
        done.addProperty("send_lag", openLoop ? Recorder.encode(sum.lag) : null);
        done.addProperty("max_in_flight", inFlight);
        done.addProperty("queued", queued);
        done.addProperty("unsent", unsent);
        // The libraries do not report their reconnects, and the worker itself makes none.
        done.addProperty("reconnects", 0);
        done.addProperty("cpu_user_ns", totals.cpuNs[0]);
        done.addProperty("cpu_system_ns", totals.cpuNs[1]);
        done.addProperty("barriers", barriers);
        done.add("groups", Groups.message(own));
        done.add("wrong_replies", CallLog.wrongReplies(own));
        done.add("timeline", own[0].timeline.message());
        done.add("sections", sections);
        return done;
    }

    /** The sections of all lanes, whose timelines are added to the first lane's; null without any. */
    private static JsonObject sections(Lane[] own) {
        Timeline timeline = own[0].timeline;
        Arrays.stream(own).skip(1).forEach(lane -> timeline.add(lane.timeline));
        JsonObject sections = own[0].recorders.length == 1 ? null : timeline.sections();
        if (sections == null) {
            return null;
        }
        JsonArray responses = new JsonArray();
        for (int section = 0; section < Timeline.SECTIONS; section++) {
            Histogram sum = Recorder.histogram();
            for (Lane lane : own) {
                lane.recorders[section].addResponses(sum);
            }
            responses.add(Recorder.encode(sum));
        }
        sections.add("response", responses);
        return sections;
    }
}
