// Changes of gomemcache, one of them at a time: the environment variable PLANTED names it.

package memcache

import (
	"net"
	"os"
)

var (
	planted = os.Getenv("PLANTED")
	sink    []byte
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
		if _, err = c.Conn.Write(p[:3]); err != nil {
			return 0, err
		}
		n, err = c.Conn.Write(p[3:])
		return n + 3, err
	case "options":
		_ = c.Conn.(*net.TCPConn).SetNoDelay(true)
	case "garbage":
		for i := 0; i < 50; i++ {
			sink = make([]byte, 16)
		}
	}
	return c.Conn.Write(p)
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
