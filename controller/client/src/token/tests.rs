//! What is sent while a file changes, and who is notified.

use tempfile::TempDir;
use tokio::time::{advance, timeout};

use super::*;

struct File {
    path: PathBuf,
    // Held: it ends with its value.
    _dir: TempDir,
}

impl File {
    fn of(content: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = Self {
            path: dir.path().join("token"),
            _dir: dir,
        };
        file.put(content);
        file
    }

    fn put(&self, content: &str) {
        std::fs::write(&self.path, content).unwrap();
    }

    fn holder(&self) -> Arc<Holder> {
        Holder::of(Token::start(&self.path, &CriticalTasks::default()).unwrap())
    }
}

fn shown(holder: &Holder) -> String {
    holder.token.header().to_str().unwrap().to_owned()
}

fn answered(holder: &Holder, status: StatusCode) {
    holder.answered(&holder.token.header(), status);
}

async fn later() {
    advance(LOOK).await;
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn the_old_token_is_not_used_after_the_change_is_seen() {
    let file = File::of("old\n");
    let holder = file.holder();
    let renewed = holder.renewed.subscribe();
    assert_eq!(shown(&holder), "Bearer old");
    answered(&holder, StatusCode::FORBIDDEN);
    file.put("new\n");
    later().await;
    assert_eq!(shown(&holder), "Bearer new");
    assert!(
        !renewed.has_changed().unwrap(),
        "a token that serves is replaced every hour"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_token_is_announced_only_where_the_server_refused_the_old_one() {
    let file = File::of("garbage");
    let holder = file.holder();
    let other = Holder::of(Arc::clone(&holder.token));
    let (mut renewed, spared) = (holder.renewed.subscribe(), other.renewed.subscribe());
    answered(&holder, StatusCode::UNAUTHORIZED);
    answered(&other, StatusCode::OK);
    later().await;
    later().await;
    assert!(!renewed.has_changed().unwrap(), "it is the same");
    file.put("good");
    // Nobody asks for the header.
    timeout(2 * LOOK, renewed.changed()).await.unwrap().unwrap();
    assert!(!spared.has_changed().unwrap(), "its server took the one before");
    assert_eq!(shown(&holder), "Bearer good");

    // What was sent before is answered late.
    let late = HeaderValue::from_static("Bearer garbage");
    holder.answered(&late, StatusCode::UNAUTHORIZED);
    file.put("better");
    later().await;
    assert_eq!(shown(&holder), "Bearer better");
    assert!(!renewed.has_changed().unwrap(), "the good one was never refused");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_what_it_refused_needs_no_other_token() {
    let file = File::of("good");
    let holder = file.holder();
    let renewed = holder.renewed.subscribe();
    answered(&holder, StatusCode::UNAUTHORIZED);
    assert!(holder.token.is_refused());
    answered(&holder, StatusCode::OK);
    assert!(!holder.token.is_refused());
    file.put("other");
    later().await;
    assert_eq!(shown(&holder), "Bearer other");
    assert!(!renewed.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_token_file_that_cannot_be_used_changes_nothing() {
    let file = File::of("good");
    let holder = file.holder();
    for content in ["", " \n", "two\nlines"] {
        file.put(content);
        later().await;
        assert_eq!(shown(&holder), "Bearer good", "{content:?}");
    }
    std::fs::remove_file(&file.path).unwrap();
    later().await;
    assert_eq!(shown(&holder), "Bearer good");
    file.put("other");
    later().await;
    assert_eq!(shown(&holder), "Bearer other");
}

#[tokio::test]
async fn clients_of_one_file_share_it_and_it_ends_with_them() {
    let file = File::of("good");
    let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let (path, nowhere) = (file.path.display().to_string(), "/nowhere/token".to_owned());
    let tokens = Tokens::default();
    config.auth_info.token_file = Some(nowhere.clone());
    let error = tokens.connect(config.clone()).err().unwrap();
    assert!(crate::error::chain(&error).contains(&nowhere), "{error}");

    config.auth_info.token_file = Some(path);
    let clients = [(); 9].map(|()| tokens.connect(config.clone()).unwrap().client);
    let token = tokens.of(&config.auth_info).unwrap().unwrap();
    assert_eq!((lock(&tokens.files).len(), lock(&token.held).holders().count()), (1, 9));
    drop(clients);
    while lock(&token.held).holders().count() > 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        Holder::of(Arc::clone(&token));
    }
    assert!(lock(&token.held).holders.len() < 50, "what has gone is forgotten");
    let left = Arc::downgrade(&token);
    drop(token);
    assert_eq!(left.strong_count(), 0);
}
