package control

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// onlyTheOwners asks the pipe itself who may open it.
func onlyTheOwners(t *testing.T, path string) {
	t.Helper()
	name, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(string(name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	rights, err := windows.GetSecurityInfo(windows.Handle(pipe.Fd()), windows.SE_KERNEL_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	for _, everybody := range []string{";;;WD)", ";;;AN)", ";;;AU)", ";;;BU)"} {
		if strings.Contains(rights.String(), everybody) {
			t.Errorf("others may open the pipe: %s", rights)
		}
	}
	if !strings.HasPrefix(rights.String(), "D:P(A;") {
		t.Errorf("the pipe takes rights from elsewhere: %s", rights)
	}
}
