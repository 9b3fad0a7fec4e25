// The worker's identity.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func (w *Worker) hello() any {
	return &Ready{
		Type: "ready", Protocol: 2, Client: "go/" + w.name, Library: w.client.Library,
		LibraryVersion: moduleVersion(w.client.Library), Language: "go", Runtime: runtimeText(),
		Capabilities: w.client.capabilities(),
	}
}

// moduleVersion is a module's version in this binary, as the linker wrote it; for a source tree, its path.
func moduleVersion(path string) string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path && module.Replace != nil {
			return module.Replace.Path
		}
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

func runtimeText() string {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	collector := fmt.Sprintf("GOGC=%d", percent)
	if percent < 0 {
		collector = "GOGC=off"
	}
	return fmt.Sprintf("%s, %s, GOMAXPROCS=%d", runtime.Version(), collector, runtime.GOMAXPROCS(0))
}
