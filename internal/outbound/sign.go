package outbound

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

const secretPrefix = "whsec_"

// NewSecret makes a secret that messages are signed with, in the form that receivers' libraries read.
func NewSecret() string {
	b := make([]byte, 24)
	rand.Read(b) // never fails: crypto/rand crashes the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// sign is the signatures of a message, one for each secret, as the header webhook-signature has them.
func sign(secrets []string, id string, at time.Time, body []byte) (string, error) {
	var all []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil || len(key) < 16 {
			return "", errors.New("the signing secret is damaged: make a new one")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " "), nil
}
