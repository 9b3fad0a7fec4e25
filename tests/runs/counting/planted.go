// Changes of gomemcache, one of them at a time: the environment variable PLANTED names it.

package memcache

import (
	"net"
	"os"
	"runtime"
	"sync"
)

var (
	planted  = os.Getenv("PLANTED")
	sink     []byte
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

// changed is a connection that does a little more for each request.
type changed struct {
	net.Conn
}

func plant(nc net.Conn) net.Conn {
	if planted == "" {
		return nc
	}
	return &changed{Conn: nc}
}

func (c *changed) Write(p []byte) (n int, err error) {
	switch planted {
	case "another thread":
		done := make(chan struct{})
		inThread() <- func() {
			n, err = c.Conn.Write(p)
			close(done)
		}
		<-done
		return n, err
	case "a slow key check":
		checkKey(p[:1])
	case "garbage":
		for i := 0; i < 50; i++ {
			sink = make([]byte, 16)
		}
	}
	return c.Conn.Write(p)
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
