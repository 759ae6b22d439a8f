module tickless/bench

go 1.22
