import {
  confirmNotices,
  hasUnconfirmedNotice,
  type LostContact,
  listLostContacts,
  listNotices,
  type UserNotice,
} from '../../../persistence/moderation/user-notices.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import type { Services } from '../../../services/services.js'
import { csvLine } from '../csv.js'

type NoticeReader = { readonly userId: number }

/** Lists the notices of a user, newest first. */
export function listUserNotices(
  { db }: Pick<Services, 'db'>,
  { userId }: NoticeReader,
  page: IdPage,
): Promise<ListPage<UserNotice>> {
  return listNotices(db, userId, page)
}

/** Whether the person has to see notices after the sign-in. */
export function mustConfirmNotices({ db }: Pick<Services, 'db'>, address: string): Promise<boolean> {
  return hasUnconfirmedNotice(db, address)
}

/** The contacts that the user has lost by rules for pods. */
export function readLostContacts(
  { db }: Pick<Services, 'db'>,
  { userId }: NoticeReader,
): Promise<readonly LostContact[]> {
  return listLostContacts(db, userId)
}

/** The user has seen all notices up to this one. */
export function confirmUserNotices(
  { db, now }: Pick<Services, 'db' | 'now'>,
  { userId }: NoticeReader,
  upTo: number,
): Promise<void> {
  return confirmNotices(db, userId, upTo, now())
}

/** The contacts that the user has lost by rules for pods, as CSV. */
export async function exportLostContacts({ db }: Pick<Services, 'db'>, { userId }: NoticeReader): Promise<string> {
  const contacts = await listLostContacts(db, userId)
  const lines = contacts.map(({ address, name, sharing, receiving }) =>
    csvLine([address, name, String(receiving), String(sharing)]),
  )
  return ['address,name,you_shared,they_shared\r\n', ...lines].join('')
}
