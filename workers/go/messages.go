// The messages of the worker protocol, version 2: JSON lines.

package main

import "encoding/json"

// Request is any of the requests; missing fields have their defaults.
type Request struct {
	Type string `json:"type"`
	// prepare
	Servers     []string          `json:"servers"`
	Wire        string            `json:"wire"`
	Threads     int               `json:"threads"`
	Connections int               `json:"connections"`
	Depth       int               `json:"depth"`
	Tape        string            `json:"tape"`
	Segment     [2]int            `json:"segment"`
	TimeoutMs   int64             `json:"timeout_ms"`
	Options     map[string]string `json:"options"`
	// run
	Phase       string  `json:"phase"`
	StartUnixNs int64   `json:"start_unix_ns"`
	Ops         *int64  `json:"ops"`
	DurationMs  *int64  `json:"duration_ms"`
	Calls       string  `json:"calls"`
	GivesUp     *GiveUp `json:"gives_up"`
	Heap        bool    `json:"heap"`
	// slice, which also has StartUnixNs
	LengthUs int64 `json:"length_us"`
	LeadInUs int64 `json:"lead_in_us"`
}

func parse(line []byte) (*Request, error) {
	request := &Request{
		Wire: "text", Threads: 1, Connections: 1, Depth: 1, Segment: [2]int{0, 1}, TimeoutMs: 1000,
	}
	return request, json.Unmarshal(line, request)
}

// Ready answers `hello` with every field, and `prepare` with none.
type Ready struct {
	Type           string   `json:"type"`
	Protocol       int      `json:"protocol"`
	Client         string   `json:"client,omitempty"`
	Library        string   `json:"library,omitempty"`
	LibraryVersion string   `json:"library_version,omitempty"`
	Language       string   `json:"language,omitempty"`
	Runtime        string   `json:"runtime,omitempty"`
	Capabilities   []string `json:"capabilities,omitempty"`
}

// Progress is sent each second of a run.
type Progress struct {
	Type   string `json:"type"`
	Ops    int64  `json:"ops"`
	Errors int64  `json:"errors"`
}

// Done is the end of a run.
type Done struct {
	Type          string                `json:"type"`
	Phase         string                `json:"phase"`
	ElapsedNs     int64                 `json:"elapsed_ns"`
	SendElapsedNs int64                 `json:"send_elapsed_ns"`
	Operations    map[string]*Operation `json:"operations"`
	SendLag       *string               `json:"send_lag"`
	MaxInFlight   int64                 `json:"max_in_flight"`
	Queued        int64                 `json:"queued"`
	Unsent        int64                 `json:"unsent"`
	Reconnects    int64                 `json:"reconnects"`
	Renewed       int64                 `json:"renewed"`
	CPUUserNs     int64                 `json:"cpu_user_ns"`
	CPUSystemNs   int64                 `json:"cpu_system_ns"`
	Timeline      *Timeline             `json:"timeline"`
	Sections      *Sections             `json:"sections"`
	Groups        *Groups               `json:"groups"`
	LeadIn        map[string]*Operation `json:"lead_in"` // of slices
	WrongReplies  []WrongReply          `json:"wrong_replies"`
	Heap          *Heap                 `json:"heap"`
}

// SliceDone is the end of a slice.
type SliceDone struct {
	Type      string `json:"type"`
	Ops       int64  `json:"ops"`
	Errors    int64  `json:"errors"`
	LeadInOps int64  `json:"lead_in_ops"`
	ElapsedNs int64  `json:"elapsed_ns"`
	HalfOps   int64  `json:"half_ops"`
	HalfNs    int64  `json:"half_ns"`
}

// Timeline is a window in slices.
type Timeline struct {
	SliceNs    int64   `json:"slice_ns"`
	OK         []int64 `json:"ok"`
	ResponseNs []int64 `json:"response_ns"`
}

// Sections are a window's parts, each with its histogram.
type Sections struct {
	LengthNs int64     `json:"length_ns"`
	OK       []int64   `json:"ok"`
	Response []*string `json:"response"`
}

// Groups are the whole groups of a closed loop.
type Groups struct {
	Length uint64  `json:"length"`
	OK     int64   `json:"ok"`
	Time   *string `json:"time"`
}

// Operation is the result of one kind of operation.
type Operation struct {
	Attempts    int64            `json:"attempts"`
	OK          int64            `json:"ok"`
	Hits        int64            `json:"hits"`
	Misses      int64            `json:"misses"`
	NotStored   int64            `json:"not_stored"`
	WrongValues int64            `json:"wrong_values"`
	Errors      map[string]int64 `json:"errors"`
	Keys        int64            `json:"keys"`
	ValueBytes  int64            `json:"value_bytes"`
	KeyBytes    int64            `json:"key_bytes"`
	BusyNs      int64            `json:"busy_ns"`
	Response    *string          `json:"response"`
	Service     *string          `json:"service"`
}

// Unsupported says that this worker cannot do what was requested.
type Unsupported struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Failure says that a request failed.
type Failure struct {
	Type     string `json:"type"`
	Kind     string `json:"kind"`
	Text     string `json:"text"`
	Definite bool   `json:"definite"`
}

func failure(kind, text string) *Failure {
	return &Failure{Type: "error", Kind: kind, Text: text, Definite: true}
}
