package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestBillNamesWhatIsLinked reads this test itself, a program that Go has built.
func TestBillNamesWhatIsLinked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bill.json")
	if err := run([]string{self, file}); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(out), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
		if c.Name != "std" && (c.Version == "" || c.Properties == nil) {
			t.Errorf("%s has neither a version nor a sum", c.Name)
		}
	}
	if want := []string{"std", "github.com/CycloneDX/cyclonedx-go"}; !slices.Equal(names, want) {
		t.Errorf("the bill names %q, want %q", names, want)
	}
	if name := bom.Metadata.Component.Name; name != "github.com/relock-go/relock/internal/tools/sbom" {
		t.Errorf("the bill is of %q", name)
	}
}

func TestWhatIsNoProgramHasNoBill(t *testing.T) {
	if err := run([]string{"main.go", filepath.Join(t.TempDir(), "bill.json")}); err == nil {
		t.Error("a text has a bill")
	}
	if err := run(nil); !errors.Is(err, errUsage) {
		t.Errorf("without a program: %v", err)
	}
}
