package weekly

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

// NewSecret makes a secret that deliveries are signed with, in the form that receivers' libraries read.
func NewSecret() string {
	b := make([]byte, 24)
	rand.Read(b) // never fails: crypto/rand crashes the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// sign is the signature of a message, as the header webhook-signature has it.
func sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) < 16 {
		return "", errors.New("the signing secret is damaged: make a new one")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
