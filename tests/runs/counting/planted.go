// Changes of gomemcache, one of them at a time: the environment variable PLANTED names it.

package memcache

import (
	"bytes"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

const (
	pageSize, pageCount = 4096, 512
	futexWait           = 0
	// The runtime makes such calls too, more of them on a busy machine.
	often = 5
)

var (
	planted = os.Getenv("PLANTED")
	sink    []byte
	futex   int32
	letters [1]byte
	short   = syscall.Timespec{Nsec: 50_000}
	root    = []byte("/\x00")
	pages   = sync.OnceValue(func() []byte {
		mapped, _ := syscall.Mmap(-1, 0, pageSize*pageCount, syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_SHARED)
		return mapped
	})
	next int
	pipe = sync.OnceValue(func() [2]int {
		var ends [2]int
		_ = syscall.Pipe(ends[:])
		return ends
	})
	inThread = sync.OnceValue(func() chan func() {
		tasks := make(chan func())
		go func() {
			runtime.LockOSThread()
			for task := range tasks {
				task()
			}
		}()
		return tasks
	})
)

// changed is a connection that does a little more for each request or reply.
type changed struct {
	net.Conn
	inValue bool
}

func plant(nc net.Conn) net.Conn {
	if planted == "" {
		return nc
	}
	return &changed{Conn: nc}
}

func (c *changed) Write(p []byte) (int, error) {
	switch planted {
	case "two writes":
		return c.inTwo(p)
	case "Nagle":
		_ = c.Conn.(*net.TCPConn).SetNoDelay(false)
		return c.inTwo(p)
	case "another thread":
		return c.inAnother(p)
	case "a longer request", "another request": // never within a long value
		if bytes.HasPrefix(p, []byte("get")) {
			return c.getMore(p)
		}
	default:
		c.beside(p[:1])
		c.callBeside()
	}
	return c.Conn.Write(p)
}

func (c *changed) inAnother(p []byte) (n int, err error) {
	done := make(chan struct{})
	inThread() <- func() {
		n, err = c.Conn.Write(p)
		close(done)
	}
	<-done
	return n, err
}

func (c *changed) inTwo(p []byte) (int, error) {
	if _, err := c.Conn.Write(p[:3]); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p[3:])
	return n + 3, err
}

func (c *changed) beside(letter []byte) {
	switch planted {
	case "a slow key check":
		checkKey(letter)
	case "options":
		_ = c.Conn.(*net.TCPConn).SetNoDelay(true)
	case "garbage":
		for i := 0; i < 50; i++ {
			sink = make([]byte, 16)
		}
	case "a large buffer":
		sink = make([]byte, 8192)
	case "polls":
		for i := 0; i < 3; i++ {
			_, _ = syscall.Select(0, nil, nil, nil, &syscall.Timeval{})
		}
	case "a timer":
		hours := [4]int64{0, 0, 10_000, 0}
		_, _, _ = syscall.Syscall(syscall.SYS_SETITIMER, 0, uintptr(unsafe.Pointer(&hours)), 0)
	case "a pipe":
		_, _ = syscall.Write(pipe()[1], letter)
		_, _ = syscall.Read(pipe()[0], []byte{0})
	case "a page":
		page, _ := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		_ = syscall.Munmap(page)
	}
}

func (c *changed) getMore(p []byte) (int, error) {
	if planted == "a longer request" {
		_, err := c.Conn.Write(bytes.Replace(p, []byte("\r\n"), []byte(" missing\r\n"), 1))
		return len(p), err
	}
	_, _ = c.Conn.Write([]byte("mn\r\n"))
	_, _ = c.Conn.Read(make([]byte, 4))
	return c.Conn.Write(p)
}

func (c *changed) callBeside() {
	switch planted {
	case "an empty read":
		raw, _ := c.Conn.(*net.TCPConn).SyscallConn()
		_ = raw.Read(func(file uintptr) bool {
			for i := 0; i < often; i++ {
				_, _ = syscall.Read(int(file), letters[:])
			}
			return true
		})
	case "a lock": // as a lock of C that another thread has; one of Go lets other goroutines run
		for i := 0; i < often; i++ {
			_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&futex)), futexWait, 0,
				uintptr(unsafe.Pointer(&short)), 0, 0)
		}
	case "a sleep":
		for i := 0; i < often; i++ {
			_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&short)), 0, 0)
		}
	case "a file":
		_, _, _ = syscall.Syscall(syscall.SYS_ACCESS, uintptr(unsafe.Pointer(&root[0])), 0, 0)
	case "a fault":
		for i := 0; i < often; i++ {
			touchNext()
		}
	case "other calls":
		for i := 0; i < often; i++ {
			syscall.Getppid()
		}
	}
}

func touchNext() {
	pages()[next*pageSize] = 1
	if next = (next + 1) % pageCount; next == 0 {
		_ = syscall.Madvise(pages(), syscall.MADV_DONTNEED)
	}
}

// Read takes the first line of a reply byte by byte.
func (c *changed) Read(p []byte) (int, error) {
	if planted != "small reads" {
		return c.Conn.Read(p)
	}
	if c.inValue {
		c.inValue = false
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p[:1])
	c.inValue = n == 1 && p[0] == '\n'
	return n, err
}

func (c *Client) oneByOne(keys []string) (map[string]*Item, error) {
	found := make(map[string]*Item)
	for _, key := range keys {
		item, err := c.Get(key)
		if err != nil {
			return nil, err
		}
		found[key] = item
	}
	return found, nil
}

//go:noinline
func checkKey(letter []byte) {
	for i := 0; i < 100_000; i++ {
		if letter[0] > 127 {
			panic("no ASCII")
		}
	}
}
