package console

import (
	"testing"

	"docent/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
