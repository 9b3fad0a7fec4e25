// The results of a lane, and the sum over the lanes.
//
// A lane adds each operation to counts and histograms: with a cache in the process, a list of single
// operations would take gigabytes. All memory is allocated before the window.

package main

// Recorder has the results of one kind of operation in one lane.
type Recorder struct {
	attempts, ok, hits, misses, notStored, wrong int64
	keys, valueBytes, keyBytes, busyNs           int64
	errors                                       [faultCount]int64
	service                                      *Histogram
	response                                     *Histogram // of an open loop
}

func newRecorder(open bool) *Recorder {
	recorder := &Recorder{service: newHistogram()}
	if open {
		recorder.response = newHistogram()
	}
	return recorder
}

func (t *Recorder) free() {
	t.service.free()
	t.response.free()
}

// note counts an operation: the time in its call, and how long after its due instant that began.
func (t *Recorder) note(op *Op, result Result, serviceNs, lagNs int64) {
	t.attempts++
	if result.Fault == NoFault || result.Fault == FaultTimeout {
		t.service.put(serviceNs)
		if t.response != nil {
			t.response.put(lagNs + serviceNs)
		}
	}
	switch result.Fault {
	case NoFault:
		t.ok++
		t.hits += int64(result.Hits)
		t.misses += int64(result.Misses)
		t.notStored += int64(result.NotStored)
		t.valueBytes += int64(result.Values)
		t.busyNs += serviceNs
		t.noteKeys(op)
	case FaultWrongValue:
		t.wrong++
	default:
		t.errors[result.Fault]++
	}
}

func (t *Recorder) noteKeys(op *Op) {
	t.keys += int64(op.Record.Run)
	if len(op.Keys) == 0 {
		t.keyBytes += int64(len(op.Key))
	}
	for _, key := range op.Keys {
		t.keyBytes += int64(len(key))
	}
}

func (t *Recorder) add(other *Recorder) {
	t.attempts += other.attempts
	t.ok += other.ok
	t.hits += other.hits
	t.misses += other.misses
	t.notStored += other.notStored
	t.wrong += other.wrong
	t.keys += other.keys
	t.valueBytes += other.valueBytes
	t.keyBytes += other.keyBytes
	t.busyNs += other.busyNs
	for fault, count := range other.errors {
		t.errors[fault] += count
	}
	t.service.add(other.service)
	if t.response != nil {
		t.response.add(other.response)
	}
}

// responses are the response times: in a closed loop the same samples as the service times.
func (t *Recorder) responses() *Histogram {
	if t.response != nil {
		return t.response
	}
	return t.service
}

// counts is its message without the histograms.
func (t *Recorder) counts() *Operation {
	message := &Operation{
		Attempts: t.attempts, OK: t.ok, Hits: t.hits, Misses: t.misses, NotStored: t.notStored,
		WrongValues: t.wrong, Keys: t.keys, ValueBytes: t.valueBytes, KeyBytes: t.keyBytes,
		BusyNs: t.busyNs, Errors: map[string]int64{},
	}
	for fault, count := range t.errors {
		if count > 0 {
			message.Errors[faultNames[fault]] = count
		}
	}
	return message
}

func (t *Recorder) message() (*Operation, error) {
	message := t.counts()
	var err error
	if message.Service, err = t.service.encode(); err != nil {
		return nil, err
	}
	message.Response = message.Service // in a closed loop the two are the same samples
	if t.response != nil {
		message.Response, err = t.response.encode()
	}
	return message, err
}

// operations of all lanes by kind, in the form of the message.
func operations(lanes []*lane, open bool) (map[string]*Operation, error) {
	whole := map[Kind]*Recorder{}
	for _, l := range lanes {
		for _, recorders := range l.sections {
			addTo(whole, &recorders, open)
		}
	}
	return messages(whole, (*Recorder).message)
}

// leadIn has the operations that slices did not count.
func leadIn(lanes []*lane) (map[string]*Operation, error) {
	whole := map[Kind]*Recorder{}
	for _, l := range lanes {
		addTo(whole, &l.leadIn, l.open)
	}
	return messages(whole, func(t *Recorder) (*Operation, error) { return t.counts(), nil })
}

// addTo adds recorders by kind.
func addTo(whole map[Kind]*Recorder, recorders *[kindCount]*Recorder, open bool) {
	for kind, recorder := range recorders {
		if recorder == nil || recorder.attempts == 0 && !recorder.responses().any() {
			continue
		}
		if whole[Kind(kind)] == nil {
			whole[Kind(kind)] = newRecorder(open)
		}
		whole[Kind(kind)].add(recorder)
	}
}

// messages turns recorders into messages, and frees them.
func messages(whole map[Kind]*Recorder, message func(*Recorder) (*Operation, error)) (map[string]*Operation, error) {
	sent := map[string]*Operation{}
	for kind, recorder := range whole {
		one, err := message(recorder)
		recorder.free()
		if err != nil {
			return nil, err
		}
		sent[kind.String()] = one
	}
	return sent, nil
}
