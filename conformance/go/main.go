// A client by Go's crypto/tls. Its words are an address, a folder with the authority and with
// clients' certificates, and a case with its version; it ends with 0 if that goes as it should.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const megabyte = 1 << 20

type client struct {
	address, folder string
	roots           *x509.CertPool
}

func main() {
	if len(os.Args) != 4 {
		fail(errors.New("words: ADDRESS FOLDER CASE"))
	}
	pem, err := os.ReadFile(os.Args[2] + "/root.pem")
	if err != nil {
		fail(err)
	}
	c := client{address: os.Args[1], folder: os.Args[2], roots: x509.NewCertPool()}
	c.roots.AppendCertsFromPEM(pem)
	name, version, _ := strings.Cut(os.Args[3], "/")
	cases := map[string]func(uint16) error{
		"page": c.page, "down": c.down, "up": c.up, "resumed": c.resumed, "many": c.many,
		"good": c.certificate("good", true), "foreign": c.certificate("foreign", false),
		"revoked": c.certificate("revoked", false), "none": c.certificate("", false),
		"mlkem": c.group(tls.X25519MLKEM768), "x25519": c.group(tls.X25519),
		"p256": c.group(tls.CurveP256), "p384": c.group(tls.CurveP384),
		"half-closed": c.halfClosed, "old": c.old, "names": c.names, "usual": c.usual,
	}
	run, known := cases[name]
	versions := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	if !known {
		fail(fmt.Errorf("no case %q", name))
	}
	if err := run(versions[version]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (c client) config(version uint16, name string) *tls.Config {
	return &tls.Config{RootCAs: c.roots, ServerName: name, MinVersion: version, MaxVersion: version}
}

func (c client) dial(config *tls.Config) (*tls.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", c.address, config)
}

// ask sends a request and reads its response, on an open connection.
func ask(
	conn io.Writer, reader *bufio.Reader, method, path, host string, body []byte,
) ([]byte, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequest(method, "https://"+host+path, content)
	if err != nil {
		return nil, err
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return io.ReadAll(response.Body)
}

// served opens a connection, asks for the page and returns what was agreed on.
func (c client) served(config *tls.Config) (tls.ConnectionState, error) {
	conn, err := c.dial(config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	page, err := ask(conn, bufio.NewReader(conn), "GET", "/", config.ServerName, nil)
	if err == nil && !bytes.Contains(page, []byte("The page is here.")) {
		err = errors.New("another page")
	}
	return conn.ConnectionState(), err
}

func (c client) page(version uint16) error {
	state, err := c.served(c.config(version, "localhost"))
	if err == nil && state.Version != version {
		err = fmt.Errorf("version %x", state.Version)
	}
	return err
}

func (c client) usual(uint16) error {
	state, err := c.served(&tls.Config{RootCAs: c.roots, ServerName: "localhost"})
	if err == nil && (state.Version != tls.VersionTLS13 || state.CurveID != tls.X25519MLKEM768) {
		err = fmt.Errorf("version %x, group %v", state.Version, state.CurveID)
	}
	return err
}

func (c client) names(version uint16) error {
	for _, name := range []string{"localhost", "p384.test", "rsa.test", "ed25519.test"} {
		state, err := c.served(c.config(version, name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(state.PeerCertificates) != 2 {
			return fmt.Errorf("%s: a chain of %d", name, len(state.PeerCertificates))
		}
	}
	return nil
}

func pattern() []byte {
	content := make([]byte, megabyte)
	for at := range content {
		content[at] = byte(at)
	}
	return content
}

func (c client) down(version uint16) error {
	return c.repeated(version, 5, "GET", "/1m.bin", nil, pattern())
}

func (c client) up(version uint16) error {
	return c.repeated(version, 5, "POST", "/taken", pattern(), []byte("taken\n"))
}

// many has more requests on one connection than any other case.
func (c client) many(version uint16) error {
	return c.repeated(version, 500, "POST", "/taken", []byte("x"), []byte("taken\n"))
}

func (c client) repeated(
	version uint16, count int, method, path string, body, wanted []byte,
) error {
	conn, err := c.dial(c.config(version, "localhost"))
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	reader := bufio.NewReader(conn)
	for number := range count {
		content, err := ask(conn, reader, method, path, "localhost", body)
		if err != nil {
			return fmt.Errorf("request %d: %w", number, err)
		}
		if !bytes.Equal(content, wanted) {
			return fmt.Errorf("request %d: other bytes", number)
		}
	}
	return nil
}

func (c client) resumed(version uint16) error {
	config := c.config(version, "localhost")
	config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	for number := range 4 {
		state, err := c.served(config)
		if err != nil {
			return err
		}
		if state.DidResume != (number > 0) {
			return fmt.Errorf("connection %d: resumed is %v", number, state.DidResume)
		}
	}
	return nil
}

func (c client) group(group tls.CurveID) func(uint16) error {
	return func(version uint16) error {
		config := c.config(version, "rsa.test")
		config.CurvePreferences = []tls.CurveID{group}
		state, err := c.served(config)
		if err == nil && state.CurveID != group {
			err = fmt.Errorf("group %v", state.CurveID)
		}
		return err
	}
}

func (c client) certificate(name string, isServed bool) func(uint16) error {
	return func(version uint16) error {
		config := c.config(version, "required.test")
		if name != "" {
			file := c.folder + "/" + name
			pair, err := tls.LoadX509KeyPair(file+".pem", file+".key")
			if err != nil {
				return err
			}
			// (By itself Go presents only one of an authority that the server names.)
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &pair, nil
			}
		}
		_, err := c.served(config)
		if isServed {
			return err
		}
		var alert *net.OpError
		if err == nil || !errors.As(err, &alert) || alert.Op != "remote error" {
			return fmt.Errorf("it is not refused by an alert: %v", err)
		}
		return nil
	}
}

func (c client) old(uint16) error {
	for version := uint16(tls.VersionTLS10); version < tls.VersionTLS12; version++ {
		if _, err := c.served(c.config(version, "localhost")); err == nil {
			return fmt.Errorf("version %x is served", version)
		}
	}
	return nil
}

// halfClosed ends its direction behind the request, and expects the response and an orderly end.
func (c client) halfClosed(version uint16) error {
	conn, err := c.dial(c.config(version, "localhost"))
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "GET /1m.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	// (Apart from the request, so that the server receives them one after the other.)
	time.Sleep(200 * time.Millisecond)
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	content, err := io.ReadAll(conn)
	if err == nil && !bytes.HasSuffix(content, pattern()) {
		err = fmt.Errorf("%d bytes", len(content))
	}
	return err
}
