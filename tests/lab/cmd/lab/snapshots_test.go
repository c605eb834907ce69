package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestPiecesOfASnapshot(t *testing.T) {
	for _, each := range []struct{ stream, want, problem string }{
		{`{"result":{"remaining_bytes":"3","blob":"YWI="}}` + "\n" + `{"result":{"blob":"Yw=="}}`, "abc", ""},
		{`{"result":{"blob":"YWI="}}{"error":{"code":13,"message":"no space"}}`, "ab", "no space"},
		{`{"result":{"blob":"YWI`, "", "unexpected EOF"},
	} {
		var into bytes.Buffer
		err := copySnapshot(&into, strings.NewReader(each.stream))
		if into.String() != each.want {
			t.Errorf("%q of %s", into.String(), each.stream)
		}
		if problem := ""; err != nil {
			if problem = err.Error(); problem != each.problem {
				t.Errorf("%v of %s", err, each.stream)
			}
		} else if each.problem != "" {
			t.Errorf("no error of %s", each.stream)
		}
	}
}
