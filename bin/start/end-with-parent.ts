/**
 * Loaded into the processes of `pod start` before their own code. When the one that keeps them is killed, nobody would ever
 * stop them: they end by themselves, as orderly as if they had been told.
 */
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
