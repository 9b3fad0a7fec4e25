// The exports' tests read with this: what HdrHistogram and JMH make of the same histograms.
//
// hlog FILE            each interval of a log: tag, start, end, count, then its percentile table in µs
// jmh                  stdin has `value count` lines in µs: JMH's block of that sample
// jmh-rates RATE...    JMH's block of a throughput

import java.util.List;
import java.util.Scanner;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ResultRole;
import org.openjdk.jmh.util.ListStatistics;
import org.openjdk.jmh.util.MultisetStatistics;

public class Readers {
    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "hlog":
                readLog(arguments[1]);
                break;
            case "jmh":
                readSample();
                break;
            case "jmh-rates":
                readRates(List.of(arguments).subList(1, arguments.length));
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void readLog(String path) throws Exception {
        HistogramLogReader reader = new HistogramLogReader(path);
        EncodableHistogram found;
        while ((found = reader.nextIntervalHistogram()) != null) {
            Histogram histogram = (Histogram) found;
            System.out.printf("%s %d %d %d%n", histogram.getTag(), histogram.getStartTimeStamp(),
                    histogram.getEndTimeStamp(), histogram.getTotalCount());
            histogram.outputPercentileDistribution(System.out, 1000.0);
            System.out.println("end");
        }
    }

    private static void readSample() {
        MultisetStatistics statistics = new MultisetStatistics();
        Scanner scanner = new Scanner(System.in);
        while (scanner.hasNextDouble()) {
            double value = scanner.nextDouble();
            statistics.addValue(value, scanner.nextLong());
        }
        System.out.print(new Shown(statistics, "us/op").distribution());
    }

    private static void readRates(List<String> rates) {
        ListStatistics statistics = new ListStatistics();
        rates.forEach(rate -> statistics.addValue(Double.parseDouble(rate)));
        System.out.print(new Shown(statistics, "ops/s").simple());
    }

    /** A result of JMH's whose way to print itself can be asked for. */
    private static final class Shown extends Result<Shown> {
        Shown(org.openjdk.jmh.util.Statistics statistics, String unit) {
            super(ResultRole.PRIMARY, "", statistics, unit, AggregationPolicy.AVG);
        }

        String distribution() {
            return distributionExtendedInfo();
        }

        String simple() {
            return simpleExtendedInfo();
        }

        @Override
        protected org.openjdk.jmh.results.Aggregator<Shown> getThreadAggregator() {
            throw new UnsupportedOperationException();
        }

        @Override
        protected org.openjdk.jmh.results.Aggregator<Shown> getIterationAggregator() {
            throw new UnsupportedOperationException();
        }
    }
}
