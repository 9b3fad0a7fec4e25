//! The way of commands to a proxy that runs on another thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::command::Command;

pub enum Message {
    Command(Result<Command, String>),
    Stop,
}

/// Sends commands, and wakes the proxy.
#[derive(Clone)]
pub struct CommandSender {
    messages: Sender<Message>,
    wake: Arc<OwnedFd>,
}

impl CommandSender {
    pub(crate) fn new() -> io::Result<(CommandSender, Receiver<Message>)> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (messages, receiver) = channel();
        Ok((CommandSender { messages, wake: Arc::new(wake) }, receiver))
    }

    /// Send a command. One that could not be parsed is answered with its error, in its turn.
    pub fn send(&self, command: Result<Command, String>) {
        self.pass(Message::Command(command));
    }

    /// End the proxy after the commands that were sent.
    pub fn stop(&self) {
        self.pass(Message::Stop);
    }

    /// The descriptor that becomes readable when a message has been sent.
    pub(crate) fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    /// Make `wake` unreadable until the next message.
    pub(crate) fn sleep(&self) {
        // How many messages there are is not asked here.
        let _ = rustix::io::read(&*self.wake, &mut [0_u8; 8]);
    }

    fn pass(&self, message: Message) {
        // If the proxy has ended, no thread waits for an answer.
        let _ = self.messages.send(message);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}
