// Command httpd is the program of the images that a lab runs in real
// containers: a web server in the place of docker.io/library/httpd, which
// serves the files of a directory, and below /env/ the environment. LISTEN is
// the address, if not :80. With the argument `pause` it only waits, as the first
// process of a Pod does.
package main

import (
	"cmp"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	if !slices.Contains(os.Args[1:], "pause") {
		go serve(cmp.Or(os.Getenv("LISTEN"), ":80"), "/usr/local/apache2/htdocs")
	}
	<-ended
}

func serve(listen, files string) {
	handler := http.NewServeMux()
	handler.Handle("/", http.FileServer(http.Dir(files)))
	handler.HandleFunc("/env/{name}", func(answer http.ResponseWriter, request *http.Request) {
		value, found := os.LookupEnv(request.PathValue("name"))
		if !found {
			http.NotFound(answer, request)
			return
		}
		fmt.Fprint(answer, value)
	})
	server := http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
