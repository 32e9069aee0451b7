import { alert, field, hidden } from './forms.js'
import { escapeHtml, page } from './html.js'

export interface SignUpFacts {
  readonly podName: string
  readonly host: string
  readonly action: string
  readonly signIn: string
  readonly formToken: string
  readonly username: string
  readonly request: string | undefined
  readonly invitation: string | undefined
  readonly wrong: string | undefined
}

export function signUpPage(facts: SignUpFacts): string {
  const { podName, host, action, signIn, formToken, username, request, invitation, wrong } = facts
  return page({
    title: `Create an account · ${podName}`,
    content: `<p class="soft small">${escapeHtml(podName)}</p>
<h1>Create an account</h1>
${alert(wrong)}<form method="post" action="${action}">
${hidden({ form: formToken, request, invitation })}
${field({
  name: 'username',
  label: 'Username',
  type: 'text',
  autocomplete: 'username',
  value: username,
  hint: `Lower-case letters, digits, dots, hyphens and underscores. Your address will be username@${host}, and stays so.`,
  focus: true,
})}
${field({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'new-password',
  hint: 'At least 10 characters. Nobody can send you a new one by mail, so keep it well.',
})}
${field({ name: 'password_again', label: 'Password once more', type: 'password', autocomplete: 'new-password' })}
<p class="actions"><button>Create the account</button></p>
</form>
<nav><a href="${escapeHtml(signIn)}">I have an account</a></nav>`,
  })
}

export function noSignUpPage(podName: string, message: string): string {
  return page({
    title: `Create an account · ${podName}`,
    content: `<p class="soft small">${escapeHtml(podName)}</p>
<h1>Nobody can sign up here</h1>
<p>${escapeHtml(message)}</p>
<nav><a href="/">Start page</a></nav>`,
  })
}
