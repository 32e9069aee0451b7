/**
 * Preloaded into the processes of `pod start`, and into those that they start. If the parent is killed, they shut down by themselves,
 * as after SIGTERM.
 */
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
// The listener alone would keep a process like the daily backup from ending when its work is done.
process.channel?.unref()
