import type { SettingSchema, ValuesOf } from './schemas.js'
import { ACCOUNT_VARIABLES } from './variables/accounts.js'
import { BACKUP_VARIABLES } from './variables/backup.js'
import { CONNECTION_VARIABLES } from './variables/connections.js'
import { LOG_VARIABLES } from './variables/logs.js'
import { MAIL_VARIABLES } from './variables/mail.js'
import { MODERATION_VARIABLES } from './variables/moderation.js'
import { PICTURE_VARIABLES } from './variables/pictures.js'
import { POD_VARIABLES } from './variables/pod.js'
import { REQUEST_VARIABLES } from './variables/requests.js'
import { STORE_VARIABLES } from './variables/stores.js'
import { WORKER_VARIABLES } from './variables/workers.js'

/** All environment variables of the pod. */
export const VARIABLES = {
  ...POD_VARIABLES,
  ...CONNECTION_VARIABLES,
  ...STORE_VARIABLES,
  ...WORKER_VARIABLES,
  ...ACCOUNT_VARIABLES,
  ...MAIL_VARIABLES,
  ...MODERATION_VARIABLES,
  ...REQUEST_VARIABLES,
  ...PICTURE_VARIABLES,
  ...BACKUP_VARIABLES,
  ...LOG_VARIABLES,
} as const satisfies Record<string, SettingSchema>

/** The valid variables, with their defaults. */
export type Environment = ValuesOf<typeof VARIABLES>

/** The variables by subject, in the order of docs/settings.md. */
export const SETTING_GROUPS = [
  { title: 'The pod and its address', variables: POD_VARIABLES },
  { title: 'Connections', variables: CONNECTION_VARIABLES },
  { title: 'Database and queue', variables: STORE_VARIABLES },
  { title: 'Workers', variables: WORKER_VARIABLES },
  { title: 'Sign-up and accounts', variables: ACCOUNT_VARIABLES },
  { title: 'Mail', variables: MAIL_VARIABLES },
  { title: 'Moderation and console', variables: MODERATION_VARIABLES },
  { title: 'Limits and client API', variables: REQUEST_VARIABLES },
  { title: 'Pictures', variables: PICTURE_VARIABLES },
  { title: 'Backup and retention', variables: BACKUP_VARIABLES },
  { title: 'Logs, metrics and traces', variables: LOG_VARIABLES },
] as const
