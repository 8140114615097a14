package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/schollz/progressbar/v3"

	"docent/cmd/docent/operator"
)

// ShowProgress shows progress on w where it is a terminal, and logs it now and then elsewhere. The returned function
// ends the display.
func ShowProgress(w io.Writer, log *slog.Logger) (operator.Progress, func()) {
	if Terminal(w) {
		return terminalProgress(w)
	}
	return logProgress(log), func() {}
}

func terminalProgress(w io.Writer) (operator.Progress, func()) {
	var bar *progressbar.ProgressBar
	var text string
	end := func() {
		if bar != nil {
			_ = bar.Finish()
			bar = nil
		}
	}
	show := func(now string, done, total int) {
		if bar == nil || now != text {
			end()
			if total == 0 {
				total = -1 // a spinner
			}
			text = now
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(now),
				progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionShowCount())
		}
		_ = bar.Set(done)
	}
	return show, end
}

// logProgress logs the first report of each kind of work, then one every few seconds, and the last.
func logProgress(log *slog.Logger) operator.Progress {
	var text string
	var last time.Time
	return func(now string, done, total int) {
		if now == text && time.Since(last) < 3*time.Second && (total == 0 || done < total) {
			return
		}
		text, last = now, time.Now()
		if total > 0 {
			log.Info(now, "done", done, "total", total)
		} else {
			log.Info(now)
		}
	}
}
