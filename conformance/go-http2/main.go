// A client by Go's net/http and golang.org/x/net/http2. Its words are a URL, a folder with the
// authority, and a case; it ends with 0 if that goes as it should.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const megabyte = 1 << 20

type client struct {
	url   string
	roots *x509.CertPool
	http  *http.Client
	// dialed counts connections.
	dialed *atomic.Int32
}

func main() {
	if len(os.Args) != 4 {
		fail(errors.New("words: URL FOLDER CASE"))
	}
	pem, err := os.ReadFile(os.Args[2] + "/root.pem")
	if err != nil {
		fail(err)
	}
	c := client{url: os.Args[1], roots: x509.NewCertPool(), dialed: new(atomic.Int32)}
	c.roots.AppendCertsFromPEM(pem)
	c.http = c.usual()
	cases := map[string]func() error{
		"page": c.page, "down": c.down, "up": c.up, "many": c.many, "echo": c.echo, "head": c.head,
		"trailers": c.trailers, "hints": c.hints, "continue": c.expecting, "cancelled": c.cancelled,
		"refused": c.refused, "goaway": c.goAway, "drained": c.drained, "ping": c.ping,
		"coalesced": c.coalesced, "streams": c.streams,
	}
	run, known := cases[os.Args[3]]
	if !known {
		fail(fmt.Errorf("no case %q", os.Args[3]))
	}
	if err := run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// usual is the client of Go's standard library, which speaks HTTP/2 and nothing else.
func (c client) usual() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols:             protocols,
		TLSClientConfig:       &tls.Config{RootCAs: c.roots},
		ExpectContinueTimeout: 5 * time.Second,
	}
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// do sends a request, and returns the response with its whole body.
func (c client) do(request *http.Request) (*http.Response, []byte, error) {
	trace := &httptrace.ClientTrace{ConnectDone: func(string, string, error) { c.dialed.Add(1) }}
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		return nil, nil, fmt.Errorf("it is %s", response.Proto)
	}
	content, err := io.ReadAll(response.Body)
	return response, content, err
}

func (c client) ask(method, path string, body io.Reader) (*http.Response, []byte, error) {
	request, err := http.NewRequest(method, c.url+path, body)
	if err != nil {
		return nil, nil, err
	}
	return c.do(request)
}

// wants asks, and expects 200 with these bytes.
func (c client) wants(method, path string, body io.Reader, wanted []byte) error {
	response, content, err := c.ask(method, path, body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Equal(content, wanted) {
		return fmt.Errorf("%s: status %d, %d bytes", path, response.StatusCode, len(content))
	}
	return nil
}

// atOnce runs so many at once, and returns the first error.
func atOnce(count int, run func(number int) error) error {
	var group sync.WaitGroup
	failed := make(chan error, count)
	for number := range count {
		group.Go(func() {
			if err := run(number); err != nil {
				failed <- fmt.Errorf("%d: %w", number, err)
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

func pattern(count int) []byte {
	content := make([]byte, count)
	for at := range content {
		content[at] = byte(at)
	}
	return content
}

func (c client) page() error {
	response, content, err := c.ask("GET", "/", nil)
	if err != nil {
		return err
	}
	if response.StatusCode != 200 || !bytes.Contains(content, []byte("The page is here.")) {
		return fmt.Errorf("status %d: %q", response.StatusCode, content)
	}
	return nil
}

func (c client) head() error {
	response, content, err := c.ask("HEAD", "/1m.bin", nil)
	if err == nil && (response.ContentLength != megabyte || len(content) > 0) {
		err = fmt.Errorf("length %d, %d bytes", response.ContentLength, len(content))
	}
	return err
}

func (c client) down() error {
	wanted := pattern(megabyte)
	return atOnce(20, func(int) error { return c.wants("GET", "/1m.bin", nil, wanted) })
}

func (c client) up() error {
	return atOnce(20, func(int) error {
		return c.wants("POST", "/taken", bytes.NewReader(pattern(megabyte)), []byte("taken\n"))
	})
}

// many has more requests at once than a connection may have.
func (c client) many() error {
	return atOnce(500, func(int) error {
		return c.wants("POST", "/taken", strings.NewReader("x"), []byte("taken\n"))
	})
}

// echo sends and receives at once, more than any window.
func (c client) echo() error {
	content := pattern(8 * megabyte)
	return atOnce(4, func(int) error {
		// (Without a length: a reader that Go does not know.)
		return c.wants("POST", "/echo", io.MultiReader(bytes.NewReader(content)), content)
	})
}

// streams waits for each piece to come back before it sends the next one.
func (c client) streams() error {
	reader, writer := io.Pipe()
	request, err := http.NewRequest("POST", c.url+"/echo", reader)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for number := range 100 {
		word := fmt.Sprintf("word %d", number)
		if _, err := io.WriteString(writer, word); err != nil {
			return err
		}
		came := make([]byte, len(word))
		if _, err := io.ReadFull(response.Body, came); err != nil || string(came) != word {
			return fmt.Errorf("%q: %q, %v", word, came, err)
		}
	}
	writer.Close()
	rest, err := io.ReadAll(response.Body)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	return err
}

func (c client) trailers() error {
	request, err := http.NewRequest("POST", c.url+"/trailers", io.MultiReader(strings.NewReader("body")))
	if err != nil {
		return err
	}
	request.Trailer = http.Header{"X-Of-Client": {"1"}}
	response, content, err := c.do(request)
	if err != nil {
		return err
	}
	if string(content) != "body" || response.Trailer.Get("X-Sum") != "42" {
		return fmt.Errorf("%q with %v", content, response.Trailer)
	}
	return nil
}

func (c client) hints() error {
	links := ""
	trace := &httptrace.ClientTrace{
		Got1xxResponse: func(code int, fields textproto.MIMEHeader) error {
			links += fmt.Sprint(code, " ", fields.Get("Link"))
			return nil
		},
	}
	request, err := http.NewRequest("GET", c.url+"/hints", nil)
	if err != nil {
		return err
	}
	context := httptrace.WithClientTrace(request.Context(), trace)
	_, content, err := c.do(request.WithContext(context))
	if err == nil && (links != "103 </style.css>; rel=preload; as=style" || len(content) == 0) {
		err = fmt.Errorf("%q, %q", links, content)
	}
	return err
}

// expecting sends its body once it is asked for.
func (c client) expecting() error {
	continued := false
	trace := &httptrace.ClientTrace{Got100Continue: func() { continued = true }}
	request, err := http.NewRequest("POST", c.url+"/echo", bytes.NewReader(pattern(megabyte)))
	if err != nil {
		return err
	}
	request.Header.Set("Expect", "100-continue")
	context := httptrace.WithClientTrace(request.Context(), trace)
	_, content, err := c.do(request.WithContext(context))
	if err == nil && (!continued || !bytes.Equal(content, pattern(megabyte))) {
		err = fmt.Errorf("continued is %v, %d bytes", continued, len(content))
	}
	return err
}

// refused has its response without a word on the body.
func (c client) refused() error {
	continued := false
	trace := &httptrace.ClientTrace{Got100Continue: func() { continued = true }}
	request, err := http.NewRequest("POST", c.url+"/refused", bytes.NewReader(pattern(megabyte)))
	if err != nil {
		return err
	}
	request.Header.Set("Expect", "100-continue")
	context := httptrace.WithClientTrace(request.Context(), trace)
	response, _, err := c.do(request.WithContext(context))
	if err == nil && (continued || response.StatusCode != http.StatusForbidden) {
		err = fmt.Errorf("continued is %v, status %d", continued, response.StatusCode)
	}
	return err
}

// here asks for a short response.
func (c client) here() error {
	return c.wants("POST", "/echo", strings.NewReader("here"), []byte("here"))
}

// cancelled gives requests up under way; the connection goes on.
func (c client) cancelled() error {
	if err := c.here(); err != nil {
		return err
	}
	err := atOnce(20, func(number int) error {
		within, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		request, err := http.NewRequestWithContext(within, "GET", c.url+"/slow", nil)
		if err != nil {
			return err
		}
		if _, _, err = c.do(request); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("it is not given up: %v", err)
		}
		return nil
	})
	if err == nil {
		err = c.here()
	}
	if err == nil && c.dialed.Load() != 1 {
		err = fmt.Errorf("%d connections", c.dialed.Load())
	}
	return err
}

// goAway asks on connections that the server ends now and then, and loses nothing. (GETs alone: what
// has reached a server is not sent twice otherwise.)
func (c client) goAway() error {
	err := atOnce(20, func(int) error {
		for range 50 {
			if err := c.page(); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && c.dialed.Load() < 5 {
		err = fmt.Errorf("%d connections", c.dialed.Load())
	}
	return err
}

// drained has requests under way while the server ends, and says so.
func (c client) drained() error {
	if err := c.here(); err != nil {
		return err
	}
	over := make(chan error, 1)
	go func() {
		over <- atOnce(50, func(int) error { return c.wants("GET", "/slow", nil, []byte("slow")) })
	}()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("under way")
	if err := <-over; err != nil {
		return err
	}
	if c.dialed.Load() != 1 {
		return fmt.Errorf("%d connections", c.dialed.Load())
	}
	return nil
}
