package console

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"docent/api"
)

const onceCookie = "docent_once"

// Once leads to another page, which shows a value one time: a secret that is kept nowhere. The browser brings it back,
// sealed for this session and that page, so that a page that is loaded again makes nothing a second time.
func (v *Visit) Once(to string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("keep what is shown once: %w", err)
	}
	v.SetCookie(onceCookie, base64.RawURLEncoding.EncodeToString(v.sealer().Seal(nil, nil, text, []byte(to))), time.Minute)
	return v.SeeOther(to)
}

// TakeOnce reads what Once has left for this page. It is false if there is nothing.
func (v *Visit) TakeOnce(into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(v.Cookie(onceCookie))
	if err != nil || len(raw) == 0 || v.Partial() {
		return false
	}
	v.SetCookie(onceCookie, "", 0)
	text, err := v.sealer().Open(nil, nil, raw, []byte(v.Req.URL.Path))
	return err == nil && json.Unmarshal(text, into) == nil
}

func (v *Visit) sealer() cipher.AEAD {
	block, err := aes.NewCipher(api.Sign(v.server.Secret, onceCookie, []byte(v.Who.SignIn.ID)))
	if err != nil {
		panic(err) // the key has the length of SHA-256
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of the one length that GCM takes
	}
	return aead
}
