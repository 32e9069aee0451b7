/**
 * Preloaded into the processes of `pod start`. If the parent is killed, they shut down by themselves, as after SIGTERM.
 */
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
