//! What every stand-in of an API server here is: a listener, a thread for each connection, and a kubeconfig for it.

use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use crate::program::scratch;

pub(crate) struct Server<S> {
    pub(crate) state: Arc<Mutex<S>>,
    folder: tempfile::TempDir,
}

impl<S: Default + Send + 'static> Server<S> {
    /// Lets `answer` serve each connection until the end of the process.
    pub(crate) fn start(answer: fn(&TcpStream, &Mutex<S>)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let folder = scratch();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\nclusters: [{{name: it, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: it, user: {{}}}}]\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n"
        );
        std::fs::write(folder.path().join("kubeconfig"), text).unwrap();
        let state = Arc::<Mutex<S>>::default();
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&serving);
                std::thread::spawn(move || answer(&connection, &state));
            }
        });
        Self { state, folder }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}
