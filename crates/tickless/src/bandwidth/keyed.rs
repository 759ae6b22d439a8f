//! A limit for each key: an address, a user, a tenant.
//!
//! # Ground rules
//!
//! - A key is two words of permits in a table, without a lock, timer or group of its own, until a
//!   caller wants to wait for it. Then it becomes a [`Limiter`], and two words again once that is
//!   no longer in use.
//! - Shards are locked for reading to take permits. They are locked for writing to add a key, to
//!   refill one once a period, and to remove those that are at rest.
//! - A key that has all its permits is as good as one that was never seen, so it may be removed.
//!   Each shard is searched for such keys whenever it has doubled: constant time for each key that
//!   is added.
//! - Nothing is cloned or dropped under a shard's lock, and no limiter asked: keys and wakers are
//!   the user's code, and the drop of a limiter may wait for a refill.

use super::controller::{Begin, Controller};
use super::limiter::{AcquireError, Limiter, LimiterBuilder, refusal};
use super::plan::{BandwidthError, Plan};
use crate::timers::Timers;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tickless_core::bandwidth::{Permits, Take};
use tickless_core::bases::StartError;
use tickless_core::phase::Phase;
use tickless_core::time::Ns;

/// A rate limit for each key: a number of permits per period; from [`LimiterBuilder::keyed`]. Cheap
/// to clone.
///
/// Every key starts with all that it may hold, a period's permits plus
/// [`extra`](LimiterBuilder::extra), and its first period starts when it is first used. Besides the
/// key itself, an entry takes about 40 bytes. Keys that have all their permits again are forgotten,
/// so the table has about as many as were used within a few periods.
///
/// ```
/// use std::net::IpAddr;
/// use std::time::Duration;
/// use tickless::bandwidth::{AcquireError, KeyedLimiter};
///
/// let timers = tickless::Timers::start()?;
/// let limiter: KeyedLimiter<IpAddr> = timers.limiter(2, Duration::from_secs(1)).keyed()?;
/// let address = IpAddr::from([192, 0, 2, 1]);
/// limiter.try_acquire(&address, 2)?;
/// assert_eq!(limiter.try_acquire(&address, 1), Err(AcquireError::Empty));
/// limiter.try_acquire(&IpAddr::from([192, 0, 2, 2]), 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyedLimiter<K, S = RandomState> {
    inner: Arc<Inner<K, S>>,
}

struct Inner<K, S> {
    timers: Timers,
    plan: Plan,
    hasher: S,
    shards: Box<[RwLock<Shard<K>>]>,
}

struct Shard<K> {
    keys: HashTable<Keyed<K>>,
    /// Those at rest are removed when there are so many keys.
    sweep_at: usize,
}

struct Keyed<K> {
    key: K,
    state: KeyState,
}

enum KeyState {
    Quiet(Permits<AtomicU64>),
    /// Somebody waited, or may.
    Whole(Limiter),
}

/// How many shards there are: enough that the removal of keys at rest holds few others up.
const SHARDS: usize = 64;

/// A shard with fewer keys is never swept.
const SWEEP_MIN: usize = 32;

impl<K, S> Clone for KeyedLimiter<K, S> {
    fn clone(&self) -> Self {
        KeyedLimiter { inner: Arc::clone(&self.inner) }
    }
}

impl<K, S> fmt::Debug for KeyedLimiter<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter").field("plan", &self.inner.plan).finish_non_exhaustive()
    }
}

impl LimiterBuilder {
    /// Starts a limiter for each key, with `HashMap`'s default hasher.
    ///
    /// # Errors
    ///
    /// Those of [`start`](LimiterBuilder::start).
    pub fn keyed<K: Hash + Eq>(self) -> Result<KeyedLimiter<K>, BandwidthError> {
        self.keyed_with_hasher(RandomState::new())
    }

    /// Starts a limiter for each key, with the given hasher.
    ///
    /// # Errors
    ///
    /// Those of [`start`](LimiterBuilder::start).
    pub fn keyed_with_hasher<K: Hash + Eq, S: BuildHasher>(
        self,
        hasher: S,
    ) -> Result<KeyedLimiter<K, S>, BandwidthError> {
        self.plan.settings.check()?;
        if self.timers.shared.is_forked_child() {
            return Err(StartError::Shut.into());
        }
        let shard = || RwLock::new(Shard { keys: HashTable::new(), sweep_at: SWEEP_MIN });
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        let inner = Inner { timers: self.timers, plan: self.plan, hasher, shards };
        Ok(KeyedLimiter { inner: Arc::new(inner) })
    }
}

impl<K: Hash + Eq, S: BuildHasher> KeyedLimiter<K, S> {
    /// Takes a key's permits if they are available. Hashes the key once and locks a part of the
    /// table for reading; for writing on the first call of a period. Allocates for a new key.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::try_acquire`].
    pub fn try_acquire<Q>(&self, key: &Q, permits: u64) -> Result<(), AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let inner = &*self.inner;
        let (hash, now) = inner.enter(key)?;
        let looked = inner.read(hash).find(hash, key).map(|state| state.take(permits, now));
        let taken = match looked {
            Some(Looked { take: Take::AskGroup, limiter: None }) | None => {
                inner.with_key(hash, key, now, |state| {
                    if let KeyState::Quiet(quiet) = state {
                        quiet.refill(&inner.plan.settings, now);
                    }
                    state.take(permits, now)
                })
            }
            Some(looked) => looked,
        };
        match taken {
            Looked { limiter: Some(limiter), .. } => limiter.try_acquire(permits),
            Looked { take: Take::Taken, .. } => Ok(()),
            // None at all can always be had: nobody waits.
            _ if permits == 0 => Ok(()),
            _ => Err(refusal(permits, inner.plan.settings.most())),
        }
    }

    /// Returns the limiter of one key, to wait for its permits. It starts with the permits that the
    /// key has left. While it exists, permits taken from it and by key are the same permits.
    ///
    /// Like any [`Limiter`], it costs a few hundred bytes and a timer until it is dropped.
    ///
    /// # Errors
    ///
    /// [`NoTimers`](AcquireError::NoTimers) in a forked child.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickless::bandwidth::KeyedLimiter;
    /// # let timers = tickless::Timers::start()?;
    /// let limiter: KeyedLimiter<String> = timers.limiter(2, Duration::from_millis(5)).keyed()?;
    /// limiter.try_acquire("alice", 2)?;
    /// limiter.limiter("alice")?.blocking_acquire(1)?;   // or .acquire(1).await
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limiter<Q>(&self, key: &Q) -> Result<Limiter, AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let inner = &*self.inner;
        let (hash, now) = inner.enter(key)?;
        inner.with_key(hash, key, now, |state| inner.whole(state, now))
    }

    /// How many permits a key has now. O(1); an unknown key has all of them.
    pub fn available<Q>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let inner = &*self.inner;
        let Ok((hash, now)) = inner.enter(key) else { return 0 };
        let limiter = match inner.read(hash).find(hash, key) {
            None => return inner.plan.settings.most(),
            Some(KeyState::Quiet(quiet)) => return quiet.available(&inner.plan.settings, now),
            Some(KeyState::Whole(limiter)) => limiter.clone(),
        };
        limiter.available()
    }

    /// How many keys are in the table. O(1): it looks at each shard.
    pub fn len(&self) -> usize {
        let is_forked_child = self.inner.timers.shared.is_forked_child();
        let shards = self.inner.shards.iter().filter(|_| !is_forked_child);
        shards.map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).keys.len()).sum()
    }

    /// Returns `true` if the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes keys that have all their permits, and limiters of keys that are no longer in use.
    /// This also happens by itself as keys are added; call it to free memory. O(keys), one shard of
    /// 64 locked at a time. Returns how many keys it removed.
    pub fn remove_idle(&self) -> usize {
        if self.inner.timers.shared.is_forked_child() {
            return 0;
        }
        let now = self.inner.timers.shared.now();
        let sweep = |lock: &RwLock<Shard<K>>| {
            let mut shard = lock.write().unwrap_or_else(PoisonError::into_inner);
            let swept = shard.sweep(&self.inner, now);
            let hash_of = |keyed: &Keyed<K>| self.inner.hasher.hash_one(&keyed.key);
            shard.keys.shrink_to(SWEEP_MIN, hash_of);
            drop(shard);
            swept.keys.len()
        };
        self.inner.shards.iter().map(sweep).sum()
    }
}

impl<K: Hash + Eq, S: BuildHasher> Inner<K, S> {
    /// A key's hash, and the current time. An error in a forked child, where a lock may be held
    /// forever.
    fn enter<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(u64, Ns), AcquireError> {
        if self.timers.shared.is_forked_child() {
            return Err(AcquireError::NoTimers);
        }
        Ok((self.hasher.hash_one(key), self.timers.shared.now()))
    }

    /// By all bits, as a program's hasher may leave most of them at zero.
    fn shard(&self, hash: u64) -> &RwLock<Shard<K>> {
        // The golden ratio, as Fibonacci hashing has it.
        &self.shards[(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS]
    }

    fn read(&self, hash: u64) -> RwLockReadGuard<'_, Shard<K>> {
        self.shard(hash).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Shard<K>> {
        self.shard(hash).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a key's state, alone with it; adds the key if it is not there.
    fn with_key<Q, R>(
        &self,
        hash: u64,
        key: &Q,
        now: Ns,
        work: impl FnOnce(&mut KeyState) -> R,
    ) -> R
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut shard = self.write(hash);
        if let Some(keyed) = shard.keys.find_mut(hash, |keyed| keyed.key.borrow() == key) {
            return work(&mut keyed.state);
        }
        // Not under the lock: the clone of a key is the user's code.
        drop(shard);
        let key = key.to_owned();
        let mut shard = self.write(hash);
        let swept = match shard.keys.len() >= shard.sweep_at {
            true => shard.sweep(self, now),
            false => Swept::default(),
        };
        let hash_of = |keyed: &Keyed<K>| self.hasher.hash_one(&keyed.key);
        let (done, spare) = match shard.keys.entry(hash, |keyed| keyed.key == key, hash_of) {
            // Somebody else was faster.
            Entry::Occupied(mut found) => (work(&mut found.get_mut().state), Some(key)),
            Entry::Vacant(vacant) => {
                let state = KeyState::Quiet(Permits::full(&self.plan.settings, now));
                (work(&mut vacant.insert(Keyed { key, state }).into_mut().state), None)
            }
        };
        drop(shard);
        drop((spare, swept));
        done
    }

    /// Makes a limiter of a key's permits, if it is none.
    fn whole(&self, state: &mut KeyState, now: Ns) -> Result<Limiter, AcquireError> {
        let quiet = match state {
            KeyState::Whole(limiter) => return Ok(limiter.clone()),
            KeyState::Quiet(quiet) => quiet,
        };
        let (left, until) = quiet.refill(&self.plan.settings, now);
        let phase = Phase::Fixed(Duration::from_nanos(until.0 % self.plan.settings.period.0));
        let begin = Begin::With(left, until);
        // Settings and phase are in order, so what it refuses is a child's.
        let controller = Controller::start(&self.timers, Plan { phase, ..self.plan }, begin)
            .map_err(|_| AcquireError::NoTimers)?;
        let limiter = Limiter { controller };
        *state = KeyState::Whole(limiter.clone());
        Ok(limiter)
    }
}

/// What came of taking permits of a key.
struct Looked {
    take: Take,
    /// The key's own limiter, to be asked instead once the lock is free: it may wake a waiter.
    limiter: Option<Limiter>,
}

impl KeyState {
    fn take(&self, permits: u64, now: Ns) -> Looked {
        match self {
            KeyState::Whole(limiter) => {
                Looked { take: Take::AskGroup, limiter: Some(limiter.clone()) }
            }
            KeyState::Quiet(quiet) => Looked { take: quiet.take(permits, now), limiter: None },
        }
    }
}

/// What was removed, to be dropped once the lock is free.
struct Swept<K> {
    keys: Vec<Keyed<K>>,
    limiters: Vec<Limiter>,
}

impl<K> Default for Swept<K> {
    fn default() -> Self {
        Swept { keys: Vec::new(), limiters: Vec::new() }
    }
}

impl<K> Shard<K> {
    fn find<Q>(&self, hash: u64, key: &Q) -> Option<&KeyState>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.keys.find(hash, |keyed| keyed.key.borrow() == key).map(|keyed| &keyed.state)
    }

    /// Takes out what is at rest. O(keys).
    fn sweep<S>(&mut self, inner: &Inner<K, S>, now: Ns) -> Swept<K> {
        let mut swept = Swept::default();
        let settings = &inner.plan.settings;
        for keyed in self.keys.iter_mut() {
            let KeyState::Whole(limiter) = &keyed.state else { continue };
            // Others are made of this one, under this lock.
            if Arc::strong_count(&limiter.controller) == 1
                && let Some((left, until)) = limiter.controller.remains()
            {
                let quiet = KeyState::Quiet(Permits::with(left.min(settings.most()), until));
                if let KeyState::Whole(old) = std::mem::replace(&mut keyed.state, quiet) {
                    swept.limiters.push(old);
                }
            }
        }
        let is_full = |keyed: &mut Keyed<K>| match &keyed.state {
            KeyState::Quiet(quiet) => quiet.refill(settings, now).0 >= settings.most(),
            KeyState::Whole(_) => false,
        };
        swept.keys.extend(self.keys.extract_if(is_full));
        self.sweep_at = (2 * self.keys.len()).max(SWEEP_MIN);
        swept
    }
}
