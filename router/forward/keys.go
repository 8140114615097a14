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
	"time"
)

// identity is what a node shows other nodes, and whom it takes for one.
type identity struct {
	own   tls.Certificate
	known []ed25519.PublicKey
}

// newIdentity derives the keys of nodes from their secrets: the first is shown, and all are taken. So a secret can be
// replaced while some nodes have the old one.
func newIdentity(secrets []string) (*identity, error) {
	if len(secrets) == 0 {
		return nil, errors.New("nodes have no secret")
	}
	keys, err := derive(secrets)
	if err != nil {
		return nil, err
	}
	var id identity
	for _, key := range keys {
		id.known = append(id.known, key.Public().(ed25519.PublicKey))
	}
	// Nobody looks at more than its key.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: nodeName},
		DNSNames: []string{nodeName}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(nil, template, template, id.known[0], keys[0])
	if err != nil {
		return nil, fmt.Errorf("make the certificate of nodes: %w", err)
	}
	id.own = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: keys[0]}
	return &id, nil
}

func derive(secrets []string) (keys []ed25519.PrivateKey, err error) {
	for _, secret := range secrets {
		seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "docent node key 1", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("derive the key of nodes: %w", err)
		}
		keys = append(keys, ed25519.NewKeyFromSeed(seed))
	}
	return keys, nil
}

// Keys are the public keys of a node's secrets, in their order, as other nodes are told them.
func Keys(secrets []string) (public []string, err error) {
	keys, err := derive(secrets)
	for _, key := range keys {
		public = append(public, base64.RawStdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)))
	}
	return public, err
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

// errStranger refuses a peer without the secret.
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
