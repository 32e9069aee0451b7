/** What an action has done, shown on the page that follows it. The key is in the query, the text is fixed. */
export const NOTICES: Readonly<Record<string, string>> = {
  paused: 'The queue is paused. Workers start no further job of it.',
  resumed: 'The queue runs again.',
  draining: 'The queue is being drained: no jobs are added, and the workers finish those that are there.',
  discarded: 'The jobs that had not begun were discarded.',
  promoted: 'The delayed jobs are due now.',
  replayed: 'The dead letters run again.',
  dropped: 'The dead letters were deleted.',
  messages_replayed: 'The messages are received again. Reload the page for their results.',
  messages_dropped: 'The messages were deleted.',
  woken: 'The failures of the pod are forgotten, and its deliveries are due.',
  asleep: 'Pending deliveries to the pod were given up. None is stored until the pod responds again.',
  blocked: 'The pod is blocked.',
  unblocked: 'The pod is no longer blocked.',
  probed: 'The pod was probed.',
}
