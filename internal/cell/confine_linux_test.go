package cell

import "testing"

func TestAWorkerOpensNoFile(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1)
	if why := unreadable(t, p.Do, "open", "/etc/hostname"); why.Why == "" || why.Broke {
		t.Errorf("%+v", why)
	}
}
