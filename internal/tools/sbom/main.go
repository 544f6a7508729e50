// Command sbom writes a software bill of materials, in CycloneDX's JSON, of a program
// that Go has built: what the linker has noted in it, whichever system it is for.
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

var errUsage = errors.New("usage: sbom PROGRAM FILE")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of the first argument to the second.
func run(args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	out, err := os.Create(args[1])
	if err != nil {
		return err
	}
	err = cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill(filepath.Base(args[0]), info))
	return errors.Join(err, out.Close())
}

// bill makes the bill of materials of a program. It sets no time and no serial number, so it is always the same.
func bill(name string, info *debug.BuildInfo) *cdx.BOM {
	program := component(cdx.ComponentTypeApplication, &info.Main)
	program.Description = name + setting(info, "GOOS") + setting(info, "GOARCH") + setting(info, "vcs.revision")
	components := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		BOMRef: "std", PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	needs := []string{"std"}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := component(cdx.ComponentTypeLibrary, module)
		components, needs = append(components, c), append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &needs}}
	return bom
}

// component is a module; the sum is the one of go.sum, which no other hash is.
func component(kind cdx.ComponentType, m *debug.Module) cdx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{Type: kind, Name: m.Path, Version: m.Version, BOMRef: url, PackageURL: url}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	return c
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return " " + key + "=" + s.Value
		}
	}
	return ""
}
