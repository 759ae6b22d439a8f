//! Only Linux can make all threads of a process pass a memory barrier. Without that, the lock of a
//! base is an ordinary mutex, which no thread can take by plain stores (see `lock`).

pub fn is_available() -> bool {
    false
}

pub fn on_every_thread() {}
