/** Each queue has the work of one kind, so that an operator can scale and pause it separately. */
export const QUEUES = [
  'inbound',
  'inbound-private',
  'fetch',
  'fetch-unproven',
  'outbound',
  'outbound-slow',
  'relay',
  'notify',
  'mail',
  'photos',
  'maintenance',
] as const

export type QueueName = (typeof QUEUES)[number]

/** The queues of received messages. */
export const INBOUND_QUEUES = ['inbound', 'inbound-private'] as const satisfies readonly QueueName[]

export type InboundQueue = (typeof INBOUND_QUEUES)[number]

export function isInboundQueue(queue: QueueName): queue is InboundQueue {
  return (INBOUND_QUEUES as readonly QueueName[]).includes(queue)
}

export function isQueueName(text: string): text is QueueName {
  return (QUEUES as readonly string[]).includes(text)
}
