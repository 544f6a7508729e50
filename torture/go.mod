module github.com/relock-go/relock/torture

go 1.26.0

replace github.com/relock-go/relock => ../
