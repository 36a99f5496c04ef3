package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// dial opens a connection, by TLS if the URL says so.
func (c client) dial(name string) (net.Conn, error) {
	parsed, err := url.Parse(c.url)
	if err != nil {
		return nil, err
	}
	c.dialed.Add(1)
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if parsed.Scheme == "http" {
		return dialer.Dial("tcp", parsed.Host)
	}
	// (All names are of this one server.)
	address := "127.0.0.1:" + parsed.Port()
	config := &tls.Config{RootCAs: c.roots, ServerName: name, NextProtos: []string{"h2"}}
	return tls.DialWithDialer(dialer, "tcp", address, config)
}

// ping sends PINGs while the connection is idle and while it is not.
func (c client) ping() error {
	conn, err := c.dial("localhost")
	if err != nil {
		return err
	}
	defer conn.Close()
	transport := &http2.Transport{AllowHTTP: true}
	link, err := transport.NewClientConn(conn)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// (Their number is below what the server takes for a flood.)
	for range 30 {
		if err := link.Ping(within); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(within, "GET", c.url+"/", nil)
	if err != nil {
		return err
	}
	response, err := link.RoundTrip(request)
	if err != nil {
		return err
	}
	if err := link.Ping(within); err != nil {
		return err
	}
	_, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return err
}

// pool coalesces as browsers do (RFC 9113 §9.1.1): a connection serves every name that its
// certificate covers, but for those that were answered with 421 on it.
type pool struct {
	client client
	lock   sync.Mutex
	links  []*coalescing
}

type coalescing struct {
	link    *http2.ClientConn
	state   tls.ConnectionState
	refused map[string]bool
	isDead  bool
}

func (p *pool) GetClientConn(request *http.Request, address string) (*http2.ClientConn, error) {
	name := request.URL.Hostname()
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, one := range p.links {
		covers := one.state.PeerCertificates[0].VerifyHostname(name) == nil
		if covers && !one.isDead && !one.refused[name] && one.link.CanTakeNewRequest() {
			return one.link, nil
		}
	}
	conn, err := p.client.dial(name)
	if err != nil {
		return nil, err
	}
	transport := &http2.Transport{ConnPool: p}
	link, err := transport.NewClientConn(conn)
	if err != nil {
		return nil, err
	}
	state := conn.(*tls.Conn).ConnectionState()
	p.links = append(p.links, &coalescing{link: link, state: state, refused: map[string]bool{}})
	return link, nil
}

func (p *pool) MarkDead(dead *http2.ClientConn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, one := range p.links {
		one.isDead = one.isDead || one.link == dead
	}
}

// refuse notes that no connection of now may serve a name.
func (p *pool) refuse(name string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, one := range p.links {
		one.refused[name] = true
	}
}

// coalesced asks for two hosts of one certificate, one of which asks for clients' certificates. The
// second host is refused with 421 on the first one's connection, and served on one of its own
// (RFC 9110 §15.5.20). A third one without a wish of its own is served on the first one's.
func (c client) coalesced() error {
	p := &pool{client: c}
	transport := &http2.Transport{ConnPool: p}
	port := c.url[strings.LastIndexByte(c.url, ':'):]
	ask := func(name string) (int, string, error) {
		request, err := http.NewRequest("GET", "https://"+name+port+"/", nil)
		if err != nil {
			return 0, "", err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		return response.StatusCode, string(content), err
	}
	steps := []struct {
		name   string
		status int
		dialed int32
	}{
		{"open.test", 200, 1}, {"also-open.test", 200, 1}, {"asking.test", 421, 1},
		{"asking.test", 200, 2}, {"open.test", 200, 2}, {"asking.test", 200, 2},
	}
	for number, step := range steps {
		status, content, err := ask(step.name)
		if err != nil {
			return err
		}
		if status != step.status || c.dialed.Load() != step.dialed {
			return fmt.Errorf("step %d, %s: status %d on connection %d: %q", number, step.name,
				status, c.dialed.Load(), content)
		}
		if status == http.StatusMisdirectedRequest {
			p.refuse(step.name)
		} else if !strings.Contains(content, "The page is here.") {
			return errors.New("another page")
		}
	}
	return nil
}
