package chatapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"docent/internal/backoff"
	"docent/internal/outbound"
)

const (
	callTime  = 15 * time.Second
	maxWait   = time.Minute // that a chat's limit is waited for
	maxAnswer = 1 << 20
)

// A Call is a request to the API of a chat, with JSON in and out.
type Call struct {
	Method, URL   string
	Authorization string // none if empty
	Body, Into    any    // nil for none
	Tries         int    // at most; 1 if 0
	Repeatable    bool   // it may arrive twice
}

// An Error is a refusal of a chat's API.
type Error struct {
	Status     int
	Code       string
	RetryAfter time.Duration // 0 if the same is not to be sent again
}

func (e *Error) Error() string { return "the chat refuses: " + e.Code }

// Do sends a request. Limits of the chat's are waited for, and failures that pass.
func (c Call) Do(ctx context.Context) error {
	growing := backoff.Exponential(time.Second, 10*time.Second)
	for n := 1; ; n++ {
		err := c.once(ctx)
		var refused *Error
		var dial *net.OpError
		pause := growing(n)
		switch {
		case err == nil || n >= c.Tries:
			return err
		case errors.As(err, &refused):
			if pause = min(refused.RetryAfter, maxWait); pause == 0 {
				return err
			}
		case !c.Repeatable && !(errors.As(err, &dial) && dial.Op == "dial"):
			return err
		}
		if backoff.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// direct follows no redirect: tokens go to the chat alone.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (c Call) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var text []byte
	if c.Body != nil {
		var err error
		if text, err = json.Marshal(c.Body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, c.URL, bytes.NewReader(text))
	if err != nil {
		return errors.New("the address of the chat is not valid") // which may hold a token
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "DiscordBot (https://docent.internal, 1)") // the form that Discord asks for
	if c.Authorization != "" {
		req.Header.Set("Authorization", c.Authorization)
	}
	resp, err := direct.Do(req)
	if err != nil {
		return outbound.Cause(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64)
		return &Error{Status: resp.StatusCode, Code: resp.Status, RetryAfter: max(time.Duration(seconds*float64(time.Second)), time.Second)}
	case resp.StatusCode >= 500 && c.Repeatable: // it may have been done all the same
		return &Error{Status: resp.StatusCode, Code: resp.Status, RetryAfter: time.Second}
	case resp.StatusCode >= 300:
		return &Error{Status: resp.StatusCode, Code: resp.Status}
	case err != nil || c.Into == nil:
		return err
	}
	if err := json.Unmarshal(answer, c.Into); err != nil {
		return fmt.Errorf("read the chat's answer: %w", err)
	}
	return nil
}
