// Samples of a run's functions by runtime/pprof, for `cachemark why --profile`.

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/google/pprof/profile"
)

const sampleHz = 500

// sampled plays a run, and samples a measured one if CACHEMARK_PROFILE names a file for its stacks.
func sampled(request *Request, play func() (*Done, error)) (*Done, error) {
	path := os.Getenv("CACHEMARK_PROFILE")
	if path == "" || request.Phase != "measure" {
		return play()
	}
	var taken bytes.Buffer
	runtime.SetCPUProfileRate(sampleHz) // pprof then says on stderr that it cannot set its own 100 Hz
	if err := pprof.StartCPUProfile(&taken); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return play()
	}
	done, err := play()
	pprof.StopCPUProfile()
	if err != nil {
		return nil, err
	}
	text, err := foldedStacks(&taken)
	if err != nil {
		text = fmt.Sprintf("# missing: runtime/pprof: %v\n", err)
	}
	return done, os.WriteFile(path, []byte(text), 0o600)
}

// foldedStacks has a line for each sample: its functions from the outermost on, and its count.
func foldedStacks(taken *bytes.Buffer) (string, error) {
	samples, err := profile.Parse(taken)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# sampler: runtime/pprof of %s\n", runtime.Version())
	for _, sample := range samples.Sample {
		var frames []string
		for l := len(sample.Location) - 1; l >= 0; l-- {
			lines := sample.Location[l].Line
			for n := len(lines) - 1; n >= 0; n-- { // inlined functions come first
				frames = append(frames, frame(lines[n].Function))
			}
		}
		if len(frames) > 0 {
			fmt.Fprintf(&text, "%s %d\n", strings.Join(frames, ";"), sample.Value[0])
		}
	}
	return text.String(), nil
}

// frame is a function with its file, which begins with `cachemark/` for this worker's own, and with
// `go/` in the standard library.
func frame(of *profile.Function) string {
	file := of.Filename
	switch module, _, _ := strings.Cut(of.Name, "/"); {
	case strings.HasPrefix(of.Name, "main."):
		file = "cachemark" + file[strings.LastIndexByte(file, '/'):]
	case !strings.Contains(module, ".") || module == of.Name:
		file = "go/" + strings.TrimPrefix(file, runtime.GOROOT()+"/src/")
	default:
		if _, after, versioned := strings.Cut(file, "@"); versioned {
			_, file, _ = strings.Cut(after, "/")
		}
	}
	return strings.ReplaceAll(fmt.Sprintf("%s (%s:%d)", of.Name, file, of.StartLine), ";", ",")
}
