import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { changeSettings, getSettings } from '../../domain/accounts/settings.js'
import { listAspects } from '../../domain/contacts/aspects.js'
import { formText } from '../forms/form-text.js'
import { checkBox, selectList } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { readRowId } from '../schemas/numbers.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const ASPECTS_SHOWN = 1_000
const REFUSALS = { aspect_not_found: 'follow_back_aspect_id', aspects_invalid: 'default_post_public' }

/** Following back, and the audience that clients offer first for a new post. */
export const sharingRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { account, viewer, t } = request.signedIn
    const [settings, { items: aspects }] = await Promise.all([
      getSettings(request.services, account.userId),
      listAspects(request.services, viewer, { offset: 0, limit: ASPECTS_SHOWN }),
    ])
    const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
    const boxes = aspects.map(({ id, name }) =>
      checkBox({
        name: 'default_post_aspect_ids[]',
        label: name,
        value: String(id),
        id: `aspect-${id}`,
        checked: settings.defaultPostAspectIds.includes(id),
      }),
    )
    return sendSettingsPage(request, reply, {
      title: t('settings.sharing'),
      errors,
      content: html`<section class="card">${settingsForm(
        request,
        html`<h2>${t('sharing.follow_back')}</h2>
${selectList({
  name: 'follow_back_aspect_id',
  label: t('sharing.when_shared'),
  options: [
    ['', t('sharing.do_nothing')],
    ...aspects.map(({ id, name }) => [String(id), t('sharing.share_back', { aspect: name })] as const),
  ],
  chosen: String(settings.followBackAspectId ?? ''),
  hint: t('sharing.follow_back_hint'),
  error: errorOf('follow_back_aspect_id'),
})}<h2>${t('sharing.new_posts')}</h2>
<p class="soft">${t('sharing.new_posts_about')}</p>
${checkBox({ name: 'default_post_public', label: t('sharing.public'), checked: settings.defaultPostPublic })}
<fieldset><legend>${t('sharing.or_aspects')}</legend>
${boxes}</fieldset>${submitButton('save', t('common.save'))}`,
      )}</section>`,
    })
  }

  app.get('/settings/sharing', route, (request, reply) => show(request, reply))

  app.post('/settings/sharing', route, async (request, reply) => {
    const aspectId = formText(request, 'follow_back_aspect_id')
    const errors = await collectFieldErrors(request.signedIn.t, REFUSALS, () =>
      changeSettings(request.services, request.signedIn.account.userId, {
        followBackAspectId: aspectId === undefined ? null : readRowId(aspectId),
        defaultPostPublic: formText(request, 'default_post_public') !== undefined,
        defaultPostAspectIds: tickedValues(request, 'default_post_aspect_ids').map(readRowId),
      }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'saved')
  })
}

/** The values of ticked boxes with one name. */
function tickedValues({ body }: FastifyRequest, name: string): readonly string[] {
  const field: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return [field].flat().filter((value) => typeof value === 'string')
}
