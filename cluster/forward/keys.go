package forward

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// identity is what a node shows other nodes, and whom it takes for one.
type identity struct {
	own   tls.Certificate
	known []ed25519.PublicKey
}

// newIdentity derives the keys of nodes from their secret. It may hold two, with a space between them: the first is
// shown, and both are taken. So a secret can be replaced while some nodes have the old one.
func newIdentity(secret string) (*identity, error) {
	var id identity
	for part := range strings.FieldsSeq(secret) {
		seed, err := hkdf.Key(sha256.New, []byte(part), nil, "docent node key 1", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("derive the key of nodes: %w", err)
		}
		key := ed25519.NewKeyFromSeed(seed)
		public := key.Public().(ed25519.PublicKey)
		id.known = append(id.known, public)
		if id.own.PrivateKey != nil {
			continue
		}
		// Nobody looks at more than its key.
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: nodeName},
			DNSNames: []string{nodeName}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
		der, err := x509.CreateCertificate(nil, template, template, public, key)
		if err != nil {
			return nil, fmt.Errorf("make the certificate of nodes: %w", err)
		}
		id.own = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	if id.own.PrivateKey == nil {
		return nil, errors.New("the secret of nodes is empty")
	}
	return &id, nil
}

// Keys are the public keys of a secret, as other nodes are told them: its own first, then those that it takes as well.
func Keys(secret string) ([]string, error) {
	id, err := newIdentity(secret)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, key := range id.known {
		keys = append(keys, base64.RawStdEncoding.EncodeToString(key))
	}
	return keys, nil
}

// nodeName stands where TLS wants the name of a server.
const nodeName = "node.docent.internal"

// config is for both ends of a connection between nodes.
func (id *identity) config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.own}, ClientAuth: tls.RequireAnyClientCert,
		ServerName: nodeName, NextProtos: protocols,
		InsecureSkipVerify: true, // the key is looked at instead, on every connection, also a resumed one
		VerifyConnection:   id.verify,
	}
}

// errStranger refuses whoever does not have the secret.
var errStranger = errors.New("the other end is no node of this cluster: all nodes need the same node secret")

func (id *identity) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errStranger
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return errStranger
	}
	for _, known := range id.known {
		if bytes.Equal(known, key) {
			return nil
		}
	}
	return errStranger
}
