import { vi } from 'vitest'
import type { Services } from '../../../src/services/services.js'

/** Makes a change after the first query with this text outside transactions, before its caller has the result. */
export function changeAfterQuery({ db }: Pick<Services, 'db'>, text: string, change: () => Promise<unknown>): void {
  const query = db.client._query.bind(db.client)
  const spy = vi.spyOn(db.client, '_query').mockImplementation(async (connection, statement) => {
    const result = await query(connection, statement)
    if (String(Reflect.get(Object(statement), 'sql')).includes(text)) {
      spy.mockRestore()
      await change()
    }
    return result
  })
}
