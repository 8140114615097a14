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
	// Get fails with api.ErrNotFound if there is none.
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
	keys   []cipher.AEAD // the first seals, and all of them open
}

// Share keeps secrets among values from now on, sealed with a key that is derived from the nodes' secret. There are two
// while it is replaced: what was sealed under the second is resealed under the first. Those in the folder that somebody
// refers to, and that are not there yet, are taken over; their files stay, for a node that goes back to being alone.
func (s *Store) Share(ctx context.Context, values Values, nodeSecrets []string, used func(name string) bool) error {
	v := &vault{values: values}
	for _, secret := range nodeSecrets {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "docent: secrets entered on pages", 32)
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
		v.keys = append(v.keys, aead)
	}
	if err := s.takeOver(ctx, v, used); err != nil {
		return fmt.Errorf("give the nodes the secrets of this data directory: %w", err)
	}
	if err := v.renew(ctx); err != nil {
		return fmt.Errorf("seal stored secrets under the nodes' new secret: %w", err)
	}
	s.vault = v
	return nil
}

// renew seals under the first key what only another one opens.
func (v *vault) renew(ctx context.Context) error {
	if len(v.keys) < 2 {
		return nil
	}
	there, err := v.values.Ages(ctx)
	if err != nil {
		return err
	}
	for name := range there {
		text, key, err := v.open(name)
		if errors.Is(err, ErrMissing) || err == nil && key == 0 {
			continue
		}
		if err == nil {
			err = v.put(name, text)
		}
		if err != nil {
			return err
		}
	}
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
	nonce := make([]byte, v.keys[0].NonceSize())
	rand.Read(nonce)
	sealed := v.keys[0].Seal(append([]byte{sealedGCM}, nonce...), nonce, []byte(text), []byte(name))
	ctx, cancel := context.WithTimeout(context.Background(), vaultTime)
	defer cancel()
	if err := v.values.Put(ctx, name, sealed); err != nil {
		return fmt.Errorf("store a secret: %w", err)
	}
	return nil
}

func (v *vault) get(name string) (string, error) {
	text, _, err := v.open(name)
	return text, err
}

// open reads a secret, and says which key opened it.
func (v *vault) open(name string) (text string, key int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), vaultTime)
	defer cancel()
	sealed, err := v.values.Get(ctx, name)
	if errors.Is(err, api.ErrNotFound) {
		return "", 0, ErrMissing
	}
	if err != nil {
		return "", 0, fmt.Errorf("read a stored secret: %w", err)
	}
	n := 1 + v.keys[0].NonceSize()
	if len(sealed) < n || sealed[0] != sealedGCM {
		return "", 0, fmt.Errorf("%w: it was not stored by this version", ErrMissing)
	}
	for i, key := range v.keys {
		if text, err := key.Open(nil, sealed[1:n], sealed[n:], []byte(name)); err == nil {
			return string(text), i, nil
		}
	}
	return "", 0, fmt.Errorf("%w: it was stored under another DOCENT_NODE_SECRET: enter it again", ErrMissing)
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
