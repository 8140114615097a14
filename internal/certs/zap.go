package certs

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"
)

// A zapCore writes what is logged with zap to a handler of slog, at lower levels: what the library does by the way is
// for those who look for a mistake, and what it fails at Docent says itself.
type zapCore struct{ handler slog.Handler }

var zapLevels = map[zapcore.Level]slog.Level{
	zapcore.DebugLevel: slog.LevelDebug - 4, zapcore.InfoLevel: slog.LevelDebug, zapcore.WarnLevel: slog.LevelInfo,
	zapcore.ErrorLevel: slog.LevelInfo,
}

func level(l zapcore.Level) slog.Level {
	if level, ok := zapLevels[l]; ok {
		return level
	}
	return slog.LevelError
}

func (c zapCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), level(l))
}

func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	return zapCore{c.handler.WithAttrs(attrs(fields))}
}

func (c zapCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, level(e.Level), "acme: "+e.Message, 0)
	r.AddAttrs(attrs(fields)...)
	return c.handler.Handle(context.Background(), r)
}

func (zapCore) Sync() error { return nil }

// attrs are fields of zap as slog has them, in the order of their names.
func attrs(fields []zapcore.Field) []slog.Attr {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	list := make([]slog.Attr, 0, len(values.Fields))
	for name, value := range values.Fields {
		list = append(list, slog.Any(name, value))
	}
	slices.SortFunc(list, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	return list
}
