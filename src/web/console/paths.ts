import type { Role } from '../../persistence/models/user.js'

/** A page of the console that the navigation links to. */
export interface ConsoleSection {
  readonly path: string
  readonly label: string
  readonly group: 'Moderation' | 'Operation'
  /** The role that the page needs at least. */
  readonly role: Role
}

/** The pages that the navigation links to, in its order. */
export const CONSOLE_SECTIONS: readonly ConsoleSection[] = [
  { path: '/admin', label: 'Overview', group: 'Moderation', role: 'moderator' },
  { path: '/admin/pods', label: 'Pods', group: 'Moderation', role: 'moderator' },
  { path: '/admin/queues', label: 'Queues', group: 'Operation', role: 'admin' },
  { path: '/admin/dead-letters', label: 'Dead letters', group: 'Operation', role: 'admin' },
  { path: '/admin/quarantine', label: 'Rejected messages', group: 'Operation', role: 'admin' },
  { path: '/admin/workers', label: 'Processes', group: 'Operation', role: 'admin' },
  { path: '/admin/database', label: 'Database', group: 'Operation', role: 'admin' },
  { path: '/admin/storage', label: 'Storage', group: 'Operation', role: 'admin' },
]
