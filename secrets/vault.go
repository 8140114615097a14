package secrets

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"docent/api"
)

// Values keep secrets where every node finds them. They are given nothing that says what a secret is.
type Values interface {
	Put(ctx context.Context, name string, sealed []byte) error
	// Get fails with api.ErrNotFound where there is none.
	Get(ctx context.Context, name string) (sealed []byte, err error)
	Remove(ctx context.Context, name string) error
	// Ages says how long ago each was stored.
	Ages(ctx context.Context) (map[string]time.Duration, error)
}

const (
	vaultTime  = 15 * time.Second // that the database may take
	vaultYoung = time.Hour        // another node may be about to store the name of such a secret
	// The first byte of a sealed secret: AES-256-GCM, a nonce of 12 bytes, and the secret's name as additional data.
	sealedGCM = 1
)

// A vault keeps secrets that are sealed.
type vault struct {
	values Values
	aead   cipher.AEAD
}

// Share keeps secrets among values from now on, sealed with a key that is derived from the nodes' secret. Those in the
// folder that somebody refers to, and that are not there yet, are taken over; their files stay, for a node that goes back
// to being alone.
func (s *Store) Share(ctx context.Context, values Values, nodeSecret string, used func(name string) bool) error {
	key, err := hkdf.Key(sha256.New, []byte(nodeSecret), nil, "docent: secrets entered on pages", 32)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	v := &vault{values, aead}
	if err := s.takeOver(ctx, v, used); err != nil {
		return fmt.Errorf("give the nodes the secrets of this data directory: %w", err)
	}
	s.vault = v
	return nil
}

func (s *Store) takeOver(ctx context.Context, v *vault, used func(name string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	there, err := v.values.Ages(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if _, kept := there[name]; kept || !used(name) || !api.ValidSecretFile(name) {
			continue
		}
		text, err := s.file(name)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if err := v.put(name, text); err != nil {
			return err
		}
	}
	return nil
}

func (v *vault) put(name, text string) error {
	nonce := make([]byte, v.aead.NonceSize())
	rand.Read(nonce)
	sealed := v.aead.Seal(append([]byte{sealedGCM}, nonce...), nonce, []byte(text), []byte(name))
	ctx, cancel := context.WithTimeout(context.Background(), vaultTime)
	defer cancel()
	if err := v.values.Put(ctx, name, sealed); err != nil {
		return fmt.Errorf("store a secret: %w", err)
	}
	return nil
}

func (v *vault) get(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), vaultTime)
	defer cancel()
	sealed, err := v.values.Get(ctx, name)
	if errors.Is(err, api.ErrNotFound) {
		return "", ErrMissing
	}
	if err != nil {
		return "", fmt.Errorf("read a stored secret: %w", err)
	}
	n := 1 + v.aead.NonceSize()
	if len(sealed) < n || sealed[0] != sealedGCM {
		return "", fmt.Errorf("%w: it was not stored by this version", ErrMissing)
	}
	text, err := v.aead.Open(nil, sealed[1:n], sealed[n:], []byte(name))
	if err != nil {
		return "", fmt.Errorf("%w: it was stored under another DOCENT_NODE_SECRET: enter it again", ErrMissing)
	}
	return string(text), nil
}

func (v *vault) remove(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), vaultTime)
	defer cancel()
	if err := v.values.Remove(ctx, name); err != nil {
		return fmt.Errorf("remove a stored secret: %w", err)
	}
	return nil
}

func (v *vault) sweep(used func(name string) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), vaultTime)
	defer cancel()
	ages, err := v.values.Ages(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for name, age := range ages {
		if age > vaultYoung && !used(name) {
			errs = append(errs, v.values.Remove(ctx, name))
		}
	}
	return errors.Join(errs...)
}
