// Threads, a child process and a channel, by Go's own runtime.
package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	sums := make(chan int, 100)
	for i := 0; i < 100; i++ {
		wait.Add(1)
		go func(n int) {
			defer wait.Done()
			runtime.LockOSThread() // a thread of its own
			sums <- n
		}(i)
	}
	wait.Wait()
	close(sums)
	total := 0
	for n := range sums {
		total += n
	}
	fmt.Println(total)
	out, err := exec.Command("echo", "child").Output()
	fmt.Print(string(out))
	if err != nil {
		panic(err)
	}
}
