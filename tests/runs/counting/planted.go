// Changes of gomemcache, one of them at a time: the environment variable PLANTED names it.

package memcache

import (
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

var (
	planted = os.Getenv("PLANTED")
	sink    []byte
	pipe    = sync.OnceValues(func() (*os.File, *os.File) {
		reader, writer, _ := os.Pipe()
		return reader, writer
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

func (c *changed) Write(p []byte) (n int, err error) {
	switch planted {
	case "two writes":
		return c.inTwo(p)
	case "Nagle":
		_ = c.Conn.(*net.TCPConn).SetNoDelay(false)
		return c.inTwo(p)
	case "another thread":
		done := make(chan struct{})
		inThread() <- func() {
			n, err = c.Conn.Write(p)
			close(done)
		}
		<-done
		return n, err
	default:
		c.beside(p[:1])
	}
	return c.Conn.Write(p)
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
	case "polls":
		for i := 0; i < 3; i++ {
			_, _ = syscall.Select(0, nil, nil, nil, &syscall.Timeval{})
		}
	case "a timer":
		hours := [4]int64{0, 0, 10_000, 0}
		_, _, _ = syscall.Syscall(syscall.SYS_SETITIMER, 0, uintptr(unsafe.Pointer(&hours)), 0)
	case "a pipe":
		reader, writer := pipe()
		_, _ = writer.Write(letter)
		_, _ = reader.Read(make([]byte, 1))
	case "a page":
		page, _ := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		_ = syscall.Munmap(page)
	}
}

// Read takes the first line of a reply byte by byte.
func (c *changed) Read(p []byte) (int, error) {
	if planted != "a read for each byte" {
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
